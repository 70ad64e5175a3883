"""Children that are restarted, stopped, and ended with their owner. Real processes, simple ones."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import pytest

from asyncpoll import children, supervisor
from asyncpoll.children import restart_delay
from asyncpoll.leash import Leash
from asyncpoll.supervisor import ChildrenFailed, ChildSpec, supervise
from tests.support import aeventually, eventually

# Adds its pid to a file, then waits; "stubborn" ones ignore SIGTERM.
CHILD = """
import os, signal, sys
pids, mood = sys.argv[1:]
if mood == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mood == "parent" and os.fork():
    signal.pause()
with open(pids, "a") as file:
    print(os.getpid(), file=file)
signal.pause()
"""


def child(pids: Path, mood: str = "plain") -> ChildSpec:
    """A child that is up once its pid is in the file `pids`."""
    return ChildSpec(mood, [sys.executable, "-c", CHILD, str(pids), mood])


def seen(pids: Path) -> list[int]:
    """The pids written so far."""
    return [int(line) for line in pids.read_text().split()] if pids.exists() else []


def lives(pid: int) -> bool:
    """True unless the process ended, reaped or not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def supervised(
    specs: Sequence[ChildSpec], when_ready: Callable[[], object] = lambda: None
) -> asyncio.Task[None]:
    """A supervisor that takes its children for ready at once."""

    async def until_ready() -> None:
        """Nothing to wait for."""

    return asyncio.create_task(supervise(specs, os.environ, until_ready, when_ready))


async def test_a_child_that_was_killed_is_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A second process appears after the first was killed, and SIGTERM ends it and the supervisor."""
    pids = tmp_path / "pids"
    running = supervised([child(pids)])
    await aeventually(lambda: len(seen(pids)) == 1)
    os.kill(seen(pids)[0], signal.SIGKILL)
    await aeventually(lambda: len(seen(pids)) == 2)
    os.kill(seen(pids)[1], signal.SIGKILL)
    await aeventually(lambda: len(seen(pids)) == 3)
    os.kill(os.getpid(), signal.SIGTERM)
    await running
    assert not any(map(lives, seen(pids)))
    said = "plain was killed by signal 9 after 0 s"
    assert caplog.messages == [
        f"{said}; starting it again in 0.5 s",
        f"{said}, 2 times in a row; starting it again in 1 s",
    ]


async def test_descendants_of_a_dead_child_are_gone_before_its_successor_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed child had forked does not keep the port."""
    monkeypatch.setattr(
        supervisor, "STOP_SECONDS", 1.0
    )  # where init reaps nobody, the dead stay in their group
    pids = tmp_path / "pids"
    running = supervised([child(pids, "parent")])
    await aeventually(lambda: len(seen(pids)) == 1)
    os.kill(os.getpgid(seen(pids)[0]), signal.SIGKILL)
    await aeventually(lambda: len(seen(pids)) == 2)
    assert not lives(seen(pids)[0])
    os.kill(os.getpid(), signal.SIGINT)
    await running
    assert not lives(seen(pids)[1])


async def test_a_child_that_ignores_sigterm_is_killed_when_its_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One SIGINT is enough."""
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.2)
    pids = tmp_path / "pids"
    running = supervised([child(pids, "stubborn")])
    await aeventually(lambda: seen(pids))
    os.kill(os.getpid(), signal.SIGINT)
    await running
    assert not lives(seen(pids)[0])


async def test_a_second_signal_kills_what_is_left_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Impatience is understood."""
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 3600.0)
    pids = tmp_path / "pids"
    running = supervised([child(pids, "stubborn")])
    await aeventually(lambda: seen(pids))
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGINT)
    await running
    assert not lives(seen(pids)[0])


async def test_a_child_that_keeps_dying_before_anything_worked_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are stopped, and the message names the culprit and its exit code."""
    monkeypatch.setattr(children, "restart_delay", lambda *_: 0.0)
    pids = tmp_path / "pids"
    broken = ChildSpec("web", [sys.executable, "-c", "raise SystemExit(7)"])

    async def never() -> None:
        await asyncio.Event().wait()

    with pytest.raises(ChildrenFailed, match=r"web ended with exit code 7 .* 3 times in a row"):
        await supervise([broken, child(pids)], os.environ, never, lambda: None)
    assert not any(map(lives, seen(pids)))


def test_restarts_come_slower_and_slower_but_not_without_bound() -> None:
    """Half a second at first, fifteen at most."""
    assert [restart_delay(deaths, 0.5, 15.0) for deaths in (1, 2, 3, 100)] == [0.5, 1.0, 2.0, 15.0]


def test_children_end_when_their_owner_is_killed(tmp_path: Path) -> None:
    """SIGKILL leaves the supervisor no chance; the leash ends its children."""
    pids = tmp_path / "pids"
    spec = child(pids)
    owner = (
        "import asyncio, os; from asyncpoll.supervisor import ChildSpec, supervise\n"
        "async def ready(): pass\n"
        f"asyncio.run(supervise([ChildSpec('child', {list(spec.command)!r})], os.environ, ready, lambda: None))"
    )
    process = subprocess.Popen([sys.executable, "-c", owner])
    try:
        eventually(lambda: seen(pids))
    finally:
        process.kill()
        process.wait()
    eventually(lambda: not lives(seen(pids)[0]))


def test_a_leash_that_is_closed_leaves_released_groups_alone() -> None:
    """Only what is still held is ended."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, os.devnull, "plain"], process_group=0
    ) as process:
        leash = Leash()
        leash.hold(process.pid)
        leash.release(process.pid)
        leash.close()
        assert lives(process.pid)
        leash = Leash()
        leash.hold(process.pid)
        threading.Thread(target=process.wait).start()  # until it is reaped it counts as left
        leash.close()
        assert process.wait() == -signal.SIGTERM
