"""Restarts under load: one process that goes away full, and several that are replaced one after the other."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import signal
import subprocess
import termios
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import psutil

from tests.acceptance.gateways import gateway
from tests.acceptance.load import Endings, at_once, clients, until_refused
from tests.acceptance.processes import ask, new_token, server, started
from tests.holdsite.client import Connection
from tests.holdsite.servers import ROOT, Served, command, ended, environment_with, serving
from tests.support import aeventually, free_port

HELD = 2_000
HELD_BY_THREE = 1_200
SUBMISSION = json.dumps({"task": "sample.add", "kwargs": {"a": 1, "b": 2}}).encode()
SUBMIT = ("/api/v1/tasks", "POST", SUBMISSION)
SERVE_THREE = ["manage.py", "serve", "--processes", "3"]
PATIENT = {"DJANGO_SETTINGS_MODULE": "tests.patient_settings"}
BREAKABLE = "tests.holdsite.breakable_asgi.application"
KEY = "Content-Type: application/json\r\nIdempotency-Key: race\r\n"
HALF = b"POST /api/v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"


async def _held(port: int) -> int:
    return int((await ask(port, "/readyz")).json["held"])


async def _raced_for(port: int) -> str:
    """The one task that twenty connections make with the same key at once, whichever process each of them meets."""
    racing = await at_once(20, lambda: Connection.open(port))
    await asyncio.gather(*(connection.ask(*SUBMIT, KEY) for connection in racing))
    answers = await asyncio.gather(*(connection.answer() for connection in racing))
    assert sorted(answer.status for answer in answers) == [200] * 19 + [202]
    (task,) = {answer.json["task_id"] for answer in answers}
    return str(task)


async def test_a_server_that_goes_away_full_answers_everybody(database_url: str) -> None:
    """2,000 held, idle and half-sent requests, submissions, and clients that poll on: no reset, and nothing unanswered. New
    work may be told when to come again, where the machine is too busy to do it in time."""
    limits = {
        "ASYNCPOLL_MAX_HELD": "5000",
        "ASYNCPOLL_MAX_HELD_PER_OWNER": "5000",
        **PATIENT,
    }
    with server("daphne", database_url, **limits) as (port, pid):
        task = (await ask(port, *SUBMIT)).json["task_id"]
        poll = f"/api/v1/tasks/{task}/long_poll?client_known_version=1&max_hold_seconds=25"
        idle = await at_once(100, lambda: Connection.open(port))
        for connection in idle:
            assert (await connection.get("/healthz")).status == 200
        half = await at_once(100, lambda: Connection.open(port))
        for connection in half:
            await connection.send(HALF)
        held = await at_once(HELD, lambda: Connection.open(port))
        for connection in held:
            await connection.ask(poll)
        await aeventually(lambda: _holds(port, HELD))
        polling, submitting = Endings(), Endings()
        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(until_refused(port, (poll, "GET", b""), polling))
                group.create_task(until_refused(port, SUBMIT, submitting))
            await aeventually(lambda: submitting.answers)
            began = time.monotonic()
            psutil.Process(pid).send_signal(signal.SIGTERM)
            answers = await asyncio.gather(*(connection.answer() for connection in held))
            took = time.monotonic() - began
            assert {(a.status, a.json["outcome"], a.closes) for a in answers} == {
                (200, "DRAINING", True)
            }
            assert {(await connection.answer()).status for connection in half} == {408}
        assert polling.kinds - {"503"} == {"200", "refused"}
        assert submitting.kinds - {"503"} == {"202", "refused"}
        refusals = [a for a in (*polling.answers, *submitting.answers) if a.status == 503]
        assert all("retry-after" in answer.headers for answer in refusals)
        everybody = [*held, *idle, *half]
        assert Counter([await c.ending() for c in everybody]) == {"eof": len(everybody)}
        assert took < 3.0
        _assert_spread([answer.json["recommended_client_backoff_ms"] for answer in answers])


async def _held_by_some(port: int) -> bool:
    return await _held(port) > 0


def _children(pid: int) -> set[int]:
    return {child.pid for child in psutil.Process(pid).children()}


async def _ready(port: int) -> bool:
    try:
        return (await ask(port, "/readyz")).status == 200
    except (ConnectionError, asyncio.IncompleteReadError):
        return False


async def _children_ready(port: int, pid: int) -> bool:
    """True once all three listen; the port refuses until the first does."""
    return len(_children(pid)) >= 3 and await _ready(port)


def _replaced(pid: int, old: set[int]) -> bool:
    """True once the three of before are gone and three others are there."""
    now = _children(pid)
    return len(now) == 3 and not now & old


async def _holds(port: int, count: int) -> bool:
    return await _held(port) == count


def _assert_spread(backoffs: list[int]) -> None:
    """Of 2,000 that come back between 250 and 3,000 ms, each tenth of that time gets its share."""
    tenths = Counter((backoff - 250) * 10 // 2_751 for backoff in backoffs)
    assert sorted(tenths) == list(range(10))
    assert max(tenths.values()) < len(backoffs) / 5


@asynccontextmanager
async def _serving_at(port: int, database_url: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """One `serve` of the project, once it is ready."""
    with started(["manage.py", "serve", "--port", str(port)], database_url, **PATIENT) as process:
        await aeventually(lambda: _ready(port))
        yield process


async def _two_behind_nginx(
    stack: AsyncExitStack, database_url: str, directory: Path
) -> tuple[dict[int, subprocess.Popen[bytes]], int]:
    """Both by their ports, and nginx's port."""
    ports = [free_port(), free_port()]
    servers = {
        port: await stack.enter_async_context(_serving_at(port, database_url)) for port in ports
    }
    return servers, stack.enter_context(gateway("nginx", directory, *ports))


async def test_two_servers_behind_nginx_are_restarted_without_an_error_to_any_client(
    database_url: str, tmp_path: Path
) -> None:
    """The whole project each, with held polls and submissions: SIGTERM, its end, a new process there, then the other."""
    key = f"Authorization: Bearer {new_token(database_url, '--owner', 'acme')}\r\n"
    async with AsyncExitStack() as stack:
        old, port = await _two_behind_nginx(stack, database_url, tmp_path)
        task = (await ask(port, *SUBMIT, key)).json["task_id"]
        poll = (
            f"/api/v1/tasks/{task}/long_poll?client_known_version=1&max_hold_seconds=5",
            "GET",
            b"",
        )
        async with AsyncExitStack() as load:
            seen = [
                await load.enter_async_context(
                    clients(port, count, request, keeps=keeps, extra=key, pause_seconds=0.1)
                )
                for count, request in ((5, SUBMIT), (20, poll))
                for keeps in (False, True)
            ]
            for number, process in old.items():
                await aeventually(lambda: _held_by_some(number))  # noqa: B023 - called here
                process.send_signal(signal.SIGTERM)
                assert await asyncio.to_thread(process.wait, 20) == 0
                await stack.enter_async_context(_serving_at(number, database_url))
                # nginx has to have noticed that it is back before the other one goes.
                await aeventually(lambda: _held_by_some(number))  # noqa: B023 - called here
    assert [endings.kinds for endings in seen] == [{"202"}] * 2 + [{"200"}] * 2
    outcomes = Counter(answer.json["outcome"] for ends in seen[2:] for answer in ends.answers)
    assert outcomes["DRAINING"] > 0


class TestReplacingChildren:
    """SIGHUP to the parent."""

    async def test_a_rolling_restart_shows_no_error_to_any_client(self, database_url: str) -> None:
        """Three processes of the project under load: old or new, one answers each request, and none is refused. The task
        that they poll is one, though twenty connections submitted it."""
        port = free_port()
        with started([*SERVE_THREE, "--port", str(port)], database_url, **PATIENT) as parent:
            await aeventually(lambda: _children_ready(port, parent.pid))
            old = _children(parent.pid)
            task = await _raced_for(port)
            poll = f"/api/v1/tasks/{task}/long_poll?client_known_version=1&max_hold_seconds=25"
            async with AsyncExitStack() as load:
                seen = [
                    await load.enter_async_context(clients(port, 5, SUBMIT, pause_seconds=0.3)),
                    await load.enter_async_context(
                        clients(port, 5, SUBMIT, keeps=True, pause_seconds=0.3)
                    ),
                    await load.enter_async_context(
                        clients(port, 20, (poll, "GET", b""), pause_seconds=0.3)
                    ),
                    await load.enter_async_context(
                        clients(port, 20, (poll, "GET", b""), keeps=True, pause_seconds=0.3)
                    ),
                ]
                await aeventually(lambda: all(endings.answers for endings in seen[:2]))
                await aeventually(lambda: _held_by_some(port))
                parent.send_signal(signal.SIGHUP)
                await aeventually(lambda: _replaced(parent.pid, old), 60.0)
                assert [endings.kinds for endings in seen] == [{"202"}] * 2 + [{"200"}] * 2
                parent.send_signal(signal.SIGTERM)
                await aeventually(lambda: all("refused" in endings.kinds for endings in seen))
            assert [endings.kinds for endings in seen] == [{"202", "refused"}] * 2 + [
                {"200", "refused"}
            ] * 2
            outcomes = {answer.json["outcome"] for ends in seen[2:] for answer in ends.answers}
            assert "DRAINING" in outcomes
            assert await asyncio.to_thread(parent.wait, 20) == 0

    async def test_a_release_that_can_not_start_replaces_nobody(self, tmp_path: Path) -> None:
        """The old processes go on serving, the log says so, and the next attempt succeeds."""
        broken = tmp_path / "broken"
        environment = {"HOLDSITE_APPLICATION": BREAKABLE, "HOLDSITE_BREAKS_WITH": str(broken)}
        with serving("daphne", "--processes", "2", **environment) as served:
            await aeventually(lambda: "Serving on" in served.output)
            old = set(served.children())
            broken.touch()
            served.process.send_signal(signal.SIGHUP)
            await aeventually(lambda: "The successor in slot 0 did not start" in served.output)
            assert set(served.children()) == old
            assert (await ask(served.port, "/plain")).status == 200
            broken.unlink()
            served.process.send_signal(signal.SIGHUP)
            await aeventually(lambda: "Replaced 2 server processes" in served.output)
            assert not set(served.children()) & old
            assert (await ask(served.port, "/plain")).status == 200

    async def test_a_process_that_is_replaced_leaves_its_queue_to_its_successor(self) -> None:
        """Whoever connected while nobody accepted is answered by the new process, and not reset by the old one."""
        with serving("daphne", "--processes", "2") as served:
            await aeventually(lambda: "Serving on" in served.output)
            old = served.children()
            for pid in old:
                psutil.Process(pid).suspend()
            queued = await at_once(50, lambda: Connection.open(served.port))
            for connection in queued:
                await connection.ask("/api/state")
            served.process.send_signal(signal.SIGHUP)
            answers = await asyncio.gather(
                *(connection.answer() for connection in queued), _resumed(served, old)
            )
            assert {answer.status for answer in answers[:-1]} == {200}

    async def test_a_terminal_that_is_closed_ends_it(self) -> None:
        """That is the same signal, and nobody would be left to see new processes."""
        ours, terminal = pty.openpty()
        process = subprocess.Popen(
            [*command("daphne", "127.0.0.1", free_port(), ""), "--processes", "2"],
            cwd=ROOT,
            env=environment_with({}),
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        try:
            os.close(terminal)
            assert process.stdout is not None
            assert b"Serving on" in await asyncio.to_thread(process.stdout.readline)
            os.close(ours)
            assert await asyncio.to_thread(process.wait, 15) == 0
        finally:
            process.stdout.close()
            ended(process)


async def _resumed(served: Served, pids: list[int]) -> None:
    await aeventually(lambda: len(served.children()) > len(pids))
    for pid in pids:
        psutil.Process(pid).resume()


async def test_connections_are_even_over_the_processes() -> None:
    """1,200 held requests by three processes: each has a third of them, within a fifth of that."""
    with serving("daphne", "--processes", "3", HOLDSITE_MAX_HELD="2000") as served:
        await aeventually(lambda: "Serving on" in served.output)
        connected = await at_once(HELD_BY_THREE, lambda: Connection.open(served.port))
        pids = Counter(
            [(await connection.get("/api/state")).json["pid"] for connection in connected]
        )
        assert len(pids) == 3
        fair = HELD_BY_THREE / 3
        assert all(abs(count - fair) <= fair / 5 for count in pids.values()), pids
