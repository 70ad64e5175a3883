"""Serving by a parent with children, and how serving starts."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Iterator

import psutil
import pytest

from tests.holdsite.client import Connection, connections, hammer
from tests.holdsite.servers import Served, run, serving
from tests.support import aeventually, eventually


@pytest.fixture(scope="module")
def two_processes() -> Iterator[Served]:
    """A parent with two children for tests that leave two running."""
    with serving("daphne", "--processes", "2") as served:
        yield served


class TestSeveralProcesses:
    """A parent that keeps the sockets, and its children."""

    async def test_both_children_serve(self, two_processes: Served) -> None:
        """The kernel spreads connections over them."""
        await aeventually(lambda: _pids(two_processes.port, 40, expect=2))
        assert two_processes.output.count("Serving on") == 1
        assert f"http://127.0.0.1:{two_processes.port} with 2 processes." in two_processes.output

    async def test_a_killed_child_is_replaced_and_its_queue_waits(
        self, two_processes: Served
    ) -> None:
        """Only its own connections end. Connects made while it is away are answered by its successor."""
        victim, other = sorted(await aeventually(lambda: _pids(two_processes.port, 40, expect=2)))
        others = await _held_by(two_processes, other)
        os.kill(victim, signal.SIGKILL)
        asking = [asyncio.create_task(_ask(two_processes.port, "/api/state")) for _ in range(60)]
        pids = {answer.json["pid"] for answer in await asyncio.gather(*asking)}
        assert other in pids
        assert victim not in pids
        assert len(pids) == 2
        assert not others.done()
        others.cancel()

    async def test_sigterm_drains_all_children_and_resets_no_connection_that_asked(self) -> None:
        """Held requests of each child get their answer, and the parent ends with 0."""
        with serving("daphne", "--processes", "2") as served:
            async with connections(served.port, 60) as connected:
                for connection in connected:
                    await connection.ask("/api/hold")
                await aeventually(lambda: _all_held(served, 60))
                children = served.children()
                hammering = [asyncio.create_task(hammer(served.port)) for _ in range(10)]
                served.process.send_signal(signal.SIGTERM)
                answers = [await connection.answer() for connection in connected]
                assert {(a.status, a.closes) for a in answers} == {(200, True)}
                assert {await connection.ending() for connection in connected} == {"eof"}
                endings = [end for client in await asyncio.gather(*hammering) for end in client]
                assert set(endings) == {"answered", "refused"}
            assert await asyncio.to_thread(served.process.wait, 10) == 0
            assert not any(psutil.pid_exists(child) for child in children)

    async def test_children_end_when_their_parent_is_killed(self) -> None:
        """SIGKILL leaves the parent no chance to tell them."""
        with serving("daphne", "--processes", "2") as served:
            eventually(lambda: "Serving on" in served.output)
            children = served.children()
            served.process.kill()
            served.process.wait()
            await aeventually(lambda: not any(psutil.pid_exists(child) for child in children))

    def test_a_child_that_can_not_start_ends_the_parent(self) -> None:
        """After five tries it says so and exits with 1, instead of trying for ever."""
        done = run(
            "serve",
            "--port",
            "0",
            "--processes",
            "2",
            HOLDSITE_APPLICATION="tests.holdsite.broken_asgi.application",
        )
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            "CommandError: A serving process could not start 5 times in a row; its own output, above, says why."
        )


async def _ask(port: int, path: str):  # type: ignore[no-untyped-def]
    connection = await Connection.open(port)
    try:
        return await connection.get(path)
    finally:
        connection.hang_up()


async def _pids(port: int, tries: int, expect: int) -> set[int] | None:
    pids = {(await _ask(port, "/api/state")).json["pid"] for _ in range(tries)}
    return pids if len(pids) == expect else None


async def _held_by(served: Served, pid: int) -> asyncio.Task[bytes]:
    while True:
        connection = await Connection.open(served.port)
        if (await connection.get("/api/state")).json["pid"] == pid:
            await connection.ask("/api/hold")
            return asyncio.create_task(connection.answer())  # type: ignore[arg-type]
        connection.hang_up()


async def _all_held(served: Served, count: int) -> bool:
    held: dict[int, int] = {}
    for _ in range(20):
        state = (await _ask(served.port, "/api/state")).json
        held[state["pid"]] = state["held"]
    return sum(held.values()) == count


class TestStarting:
    """What `serve` says when it can't, and when it can."""

    @pytest.mark.parametrize("processes", ["1", "2"])
    def test_a_taken_port_is_one_sentence(self, processes: str) -> None:
        """Also with several processes, whose sockets could share the port."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            done = run("serve", "--port", port, "--processes", processes)
        assert done.returncode == 1
        assert done.stderr.strip() == (
            f"CommandError: Port {port} of 127.0.0.1 is taken; stop what listens there, "
            "or choose another with --port."
        )

    def test_a_second_serve_with_several_processes_is_refused(self, two_processes: Served) -> None:
        """SO_REUSEPORT would let it in without a word."""
        done = run("serve", "--port", str(two_processes.port), "--processes", "2")
        assert (done.returncode, "is taken" in done.stderr) == (1, True)

    def test_a_host_that_is_not_here_is_one_sentence(self) -> None:
        """With what to give instead."""
        done = run("serve", "--host", "192.0.2.1", "--port", "0")
        assert done.returncode == 1
        assert done.stderr.strip() == (
            "CommandError: Host '192.0.2.1' is not an address of this machine; give one with --host, "
            "for example 127.0.0.1."
        )

    def test_an_application_that_can_not_be_imported_is_one_sentence(self) -> None:
        """And names the setting."""
        done = run(
            "serve", "--port", "0", HOLDSITE_APPLICATION="tests.holdsite.nowhere.application"
        )
        assert done.returncode == 1
        assert "ASGI_APPLICATION is 'tests.holdsite.nowhere.application'" in done.stderr

    async def test_it_prints_one_line_and_listens_on_ipv6(self) -> None:
        """The address, and nothing of daphne's."""
        with serving("daphne", host="::1") as served:
            answer = await (await Connection.open(served.port, "::1")).get("/api/state")
            assert answer.status == 200
            eventually(lambda: served.output)
            assert served.output.splitlines() == [f"Serving on http://[::1]:{served.port}."]

    async def test_the_open_files_limit_lowers_how_many_are_held(self) -> None:
        """It says so in one line, with the remedy, and admission is told."""
        with serving("daphne", HOLDSITE_MAX_HELD="100000000") as served:
            state = (await (await Connection.open(served.port)).get("/api/state")).json
            assert 0 < state["most"] < 100_000_000
            assert "the open-files limit lets this process hold" in served.output
            assert "ulimit -n" in served.output
