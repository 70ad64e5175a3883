"""Ctrl-C at the prompt, whatever the command is at."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from asyncpoll.cli.exits import Exit
from asyncpoll.client.testing import Act, ScriptedServer, answer
from tests.acceptance.processes import ROOT
from tests.support import PATIENCE_SECONDS, eventually

TASK = "01a22cd1-5617-761b-bc92-fb57ee6aca68"
NEVER = 600.0
# The client is to be patient for longer than this test.
WAITS = [
    answer("RUNNING", 2, hold_granted_ms=1_000, client_read_timeout_ms=400_000),
    Act(after=NEVER),
]
RUN = "from asyncpoll.cli.entry import run; run()"
# The signal comes while a lock of the connections is held: as an exception it would leave it locked.
IN_A_LOCK = f"""
import os, signal
from httpcore._synchronization import ThreadLock
acquire = ThreadLock.__enter__

def acquire_and_be_interrupted(lock):
    acquire(lock)
    os.kill(os.getpid(), signal.SIGINT)
    return lock

ThreadLock.__enter__ = acquire_and_be_interrupted
{RUN}
"""
# The cursor is hidden, and nothing was shown yet.
AS_THE_BAR_BEGINS = f"""
import os, signal, threading
from rich.progress import Progress
start = Progress.start

def start_and_be_interrupted(bar):
    start(bar)
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait()

Progress.start = start_and_be_interrupted
{RUN}
"""
# It reaches another thread, and so does not interrupt a read: as one that comes just before the read begins.
BEFORE_A_READ = f"""
import signal, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGINT}})
{RUN}
"""


@contextmanager
def asyncpoll(
    url: str, *arguments: str, script: str = RUN, stderr: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """The command, which is killed at the end if it is still there."""
    command = [sys.executable, "-c", script, *arguments, "--url", url]
    environment = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def interrupted(process: subprocess.Popen[str], when: Callable[[], object]) -> str:
    """What it says on stderr after one Ctrl-C."""
    eventually(when)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == Exit.INTERRUPTED
    return said or ""


@pytest.mark.parametrize("given", [(), ("--idempotency-key", "report 7")], ids=["made", "given"])
def test_while_submitting_it_says_how_to_submit_the_same_task_again(given: tuple[str, ...]) -> None:
    """It may have arrived, or not."""
    with ScriptedServer([Act(after=NEVER)]) as server:
        with asyncpoll(server.url, "submit", "t", *given) as process:
            said = interrupted(process, lambda: server.requests)
    key = server.requests[0].headers["idempotency-key"]
    quoted = f"'{given[1]}'" if given else key
    assert said == (
        "Stopped; whether the task is stored is not known. Submit it again with --idempotency-key "
        f"{quoted}, with which it is one task.\n"
    )


def test_in_the_middle_of_a_lock_it_ends_the_command() -> None:
    """Which would wait for that lock when it closes its connections."""
    with ScriptedServer(WAITS) as server:
        with asyncpoll(server.url, "wait", TASK, script=IN_A_LOCK) as process:
            _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == Exit.INTERRUPTED
    assert said.endswith(f"See it again with: asyncpoll wait {TASK}\n")


def test_just_before_a_read_it_ends_the_command() -> None:
    """And not when the hold is over."""
    with ScriptedServer(WAITS) as server:
        with asyncpoll(server.url, "wait", TASK, script=BEFORE_A_READ) as process:
            said = interrupted(process, lambda: len(server.requests) == 2)
    assert said.endswith(f"See it again with: asyncpoll wait {TASK}\n")


def test_a_terminal_gets_its_cursor_back() -> None:
    """And the bar stays as it was, above what is said."""
    ours, theirs = pty.openpty()
    with ScriptedServer(WAITS) as server:
        with asyncpoll(server.url, "wait", TASK, stderr=theirs) as process:
            interrupted(process, lambda: len(server.requests) == 2)
    os.close(theirs)
    *_, bar, last = _lines_with_a_cursor(ours)
    assert bar.startswith("RUNNING") and last.endswith(f"asyncpoll wait {TASK}")


def test_a_terminal_gets_its_cursor_back_as_soon_as_it_was_taken() -> None:
    """Also while the bar begins."""
    ours, theirs = pty.openpty()
    with asyncpoll("http://x", "wait", TASK, script=AS_THE_BAR_BEGINS, stderr=theirs) as process:
        process.communicate(timeout=PATIENCE_SECONDS)
    os.close(theirs)
    assert process.returncode == Exit.INTERRUPTED
    assert _lines_with_a_cursor(ours)[-1].endswith(f"asyncpoll wait {TASK}")


def _lines_with_a_cursor(terminal: int) -> list[str]:
    """What is on it, once it is certain that its cursor is."""
    shown = _rest(terminal)
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).rstrip().splitlines()


def _rest(terminal: int) -> str:
    """All that was written to a pseudo-terminal that nobody writes to any more; one read gives 4 KB of it at most."""
    with open(terminal, "rb", buffering=0) as reader:
        shown = b""
        # EIO is its end.
        with suppress(OSError):
            while some := reader.read(4096):
                shown += some
    return shown.decode()


def test_whoever_reads_what_it_says_need_not_take_it() -> None:
    """It ends, without its last words."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, b"x" * 65_536):
            pass
    os.set_blocking(writer, True)
    with ScriptedServer(WAITS) as server:
        with asyncpoll(server.url, "wait", TASK, "--quiet", stderr=writer) as process:
            interrupted(process, lambda: len(server.requests) == 2)
    os.close(reader)
    os.close(writer)


def test_a_last_act_that_trips_keeps_neither_the_process_nor_the_others() -> None:
    """Whatever it trips over."""
    script = """
import os, signal, threading
from asyncpoll.cli.interrupts import before_leaving, hear
hear()
with before_leaving(lambda: print("said", flush=True)), before_leaving(lambda: 1 / 0):
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait()
"""
    with asyncpoll("", script=script) as process:
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, said) == (Exit.INTERRUPTED, "said\n")


def test_whoever_ignores_it_for_the_command_is_obeyed() -> None:
    """As nohup does, and a shell for what it starts with `&`."""
    ignoring = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {RUN}"
    with ScriptedServer([Act(after=NEVER)]) as server:
        with asyncpoll(server.url, "wait", TASK, script=ignoring) as process:
            eventually(lambda: server.requests)
            process.send_signal(signal.SIGINT)
            server.kill()
            # It goes on, and says that its connection was cut.
            assert "trying again" in process.stderr.readline()
            assert process.poll() is None


def test_while_it_is_still_being_loaded_it_ends_the_command(tmp_path: Path) -> None:
    """Without a traceback of imports."""
    loading = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(600)"
    (tmp_path / "httpx.py").write_text(loading)
    with asyncpoll(
        "http://127.0.0.1:1",
        "wait",
        TASK,
        script=f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {RUN}",
    ) as process:
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, said) == (Exit.INTERRUPTED, "")
