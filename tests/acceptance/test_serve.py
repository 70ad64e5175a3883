"""Serving by real processes: threads, hang-ups, refusals and drains."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.holdsite.client import Connection, connections, hammer
from tests.holdsite.servers import Served, serving
from tests.support import aeventually

SERVERS = ["daphne", "uvicorn", "granian"]
HELD = 200


@pytest.fixture(scope="module", params=SERVERS)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    """One of each server, for tests that leave it as it was."""
    with serving(request.param) as served:
        yield served


@pytest.fixture(scope="module")
def daphne() -> Iterator[Served]:
    """One daphne, for tests of what only our own server does."""
    with serving("daphne") as served:
        yield served


@contextmanager
def nothing_to_log(served: Served) -> Iterator[None]:
    """No traceback is printed meanwhile."""
    before = len(served.output)
    yield
    assert "Traceback" not in served.output[before:]


async def _held(served: Served) -> int:
    asking = await Connection.open(served.port)
    held = (await asking.get("/api/state")).json["held"]
    asking.hang_up()
    return int(held)


async def _hold(served: Served, connected: list[Connection]) -> None:
    before = await _held(served)
    for connection in connected:
        await connection.ask("/api/hold")
    await aeventually(lambda: _holds(served, before + len(connected)))


async def _holds(served: Served, count: int) -> bool:
    return await _held(served) == count


class TestHolding:
    """What a held request costs, and when it stops to."""

    async def test_threads_stay_constant_while_requests_are_held(self, served: Served) -> None:
        """200 held requests have no thread of their own, under any server."""
        asking = await Connection.open(served.port)
        assert (await asking.get("/api/state")).status == 200
        before = served.threads()
        async with connections(served.port, HELD) as connected:
            await _hold(served, connected)
            assert served.threads() <= before + 2
        await aeventually(lambda: _holds(served, 0))

    async def test_a_hang_up_ends_the_wait_at_once(self, served: Served) -> None:
        """Clients that leave are uncounted, and so is the task that served them."""
        asking = await Connection.open(served.port)
        tasks = (await asking.get("/api/state")).json["tasks"]
        with nothing_to_log(served):
            async with connections(served.port, 50) as connected:
                await _hold(served, connected)
            await aeventually(lambda: _holds(served, 0))
            await aeventually(lambda: _has_tasks(asking, tasks))

    async def test_a_view_that_swallows_the_first_cancellation_is_cancelled_again(
        self, served: Served
    ) -> None:
        """One cancellation can be lost in library code; the request still ends with its client."""
        with nothing_to_log(served):
            async with connections(served.port, 1) as (connection,):
                await connection.ask("/api/stubborn")
                await aeventually(lambda: _holds(served, 1))
            asking = await Connection.open(served.port)
            await aeventually(lambda: _stubborn_ended(asking))

    async def test_an_unwrapped_django_application_answers_the_same(self) -> None:
        """Without our handler the views still hold and answer, only less cheaply."""
        with serving("uvicorn", application="tests.holdsite.unwrapped_asgi:application") as served:
            async with connections(served.port, 5) as connected:
                await _hold(served, connected)
                assert (await (await Connection.open(served.port)).get("/plain")).body == b"plain"
            await aeventually(lambda: _holds(served, 0))


async def _has_tasks(asking: Connection, most: int) -> bool:
    return bool((await asking.get("/api/state")).json["tasks"] <= most)


async def _stubborn_ended(asking: Connection) -> bool:
    return bool((await asking.get("/api/state")).json["stubborn_ended"] == 1)


class TestRefusing:
    """What is answered without the view, or in spite of it."""

    async def test_an_exception_becomes_a_problem_document_without_a_traceback(
        self, served: Served
    ) -> None:
        """The client learns that it failed, and nothing about how."""
        asking = await Connection.open(served.port)
        answer = await asking.get("/api/fail/failure")
        assert (answer.status, answer.json["type"]) == (500, "/problems/internal-error")
        assert answer.headers["content-type"] == "application/problem+json"
        assert b"secret" not in answer.body
        assert (await asking.get("/api/fail/missing")).json["detail"] == "No such thing."
        assert (await asking.get("/api/fail/forbidden")).status == 403

    async def test_a_body_over_the_limit_is_refused_with_a_problem(self, served: Served) -> None:
        """A body of 10 MB to a limit of 100,000 bytes: 413, read to the end, and the connection closes."""
        sending = await Connection.open(served.port)
        await sending.ask("/api/echo", "POST", b"x" * 10_000_000)
        answer = await sending.answer()
        assert (answer.status, answer.json["type"]) == (413, "/problems/body-too-large")
        assert answer.closes
        assert await sending.ending() == "eof"

    async def test_a_chunked_body_is_counted_while_it_arrives(self, served: Served) -> None:
        """A client that does not say how much it sends is cut off all the same, before it has ended."""
        sending = await Connection.open(served.port)
        await sending.ask("/api/echo", "POST", extra="Transfer-Encoding: chunked\r\n")
        for _ in range(4):
            await sending.send(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
        answer = await sending.answer()
        assert (answer.status, answer.closes) == (413, True)

    async def test_a_client_that_asks_first_is_refused_before_it_sends(
        self, served: Served
    ) -> None:
        """`Expect: 100-continue` with too large a body: 413 instead of "continue"."""
        sending = await Connection.open(served.port)
        await sending.ask(
            "/api/echo", "POST", extra="Content-Length: 900000\r\nExpect: 100-continue\r\n"
        )
        assert (await sending.answer()).status == 413
        assert await sending.ending() == "eof"

    async def test_a_form_is_not_parsed_before_anybody_is_asked(self, daphne: Served) -> None:
        """Twisted would, without limits: a large one froze the process, a broken one was no HTTP to it."""
        connection = await Connection.open(daphne.port)
        form = "Content-Type: multipart/form-data; boundary=x\r\n"
        await connection.ask("/api/echo", "POST", b"--nothing of the kind--", form)
        assert (await connection.answer()).json["length"] == 23
        large = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 400000000\r\n"
        await connection.ask("/echo", "POST", extra=large)
        assert (await connection.answer()).status == 413

    async def test_the_limit_is_only_for_lean_views(self, daphne: Served) -> None:
        """The rest of the project keeps Django's limits."""
        sending = await Connection.open(daphne.port)
        await sending.ask("/echo", "POST", b"x" * 200_000)
        assert (await sending.answer()).json["length"] == 200_000
        await sending.ask("/api/echo", "POST", b"x" * 100_000)
        assert (await sending.answer()).json["length"] == 100_000

    @pytest.mark.parametrize(
        "raw",
        [
            b"nonsense\r\n\r\n",
            b"GET /api/state HTTP/1.1\r\nno colon\r\n\r\n",
            b"GET /api/state HTTP/1.1\r\nX: a\x00b\r\n\r\n",
            b"GET /api/state HTTP/1.1\r\nX(y): z\r\n\r\n",
            b"GET /api/\xff HTTP/1.1\r\n\r\n",
            b"GET /api/state?\xff HTTP/1.1\r\n\r\n",
            b"POST /api/echo HTTP/1.1\r\nContent-Length: x\r\n\r\n",
            b"POST /api/echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"GET /api/state HTTP/1.1\r\n" + b"X: y\r\n" * 600 + b"\r\n",
        ],
    )
    async def test_what_is_not_http_gets_a_problem_and_no_page(
        self, daphne: Served, raw: bytes
    ) -> None:
        """Neither an HTML page nor a silent close, whatever was sent."""
        sending = await Connection.open(daphne.port)
        await sending.send(raw)
        answer = await sending.answer()
        assert (answer.status, answer.json["status"]) == (400, 400)
        assert answer.headers["content-type"] == "application/problem+json"
        assert await sending.ending() == "eof"

    async def test_a_line_that_is_too_long_gets_a_problem(self, daphne: Served) -> None:
        """Twisted itself would close without a word."""
        sending = await Connection.open(daphne.port)
        await sending.send(b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n")
        answer = await sending.answer()
        assert (answer.status, answer.json["status"]) == (431, 431)
        assert await sending.ending() == "eof"

    async def test_slow_senders_are_cut_off_and_a_hold_is_not(self, daphne: Served) -> None:
        """One byte a second of a request line, of headers, of a body: 408 each; a request that has arrived stays."""
        held = await Connection.open(daphne.port)
        await held.ask("/api/hold")
        starts = [
            b"G",
            b"GET /api/state HTTP/1.1\r\n",
            b"POST /api/echo HTTP/1.1\r\nContent-Length: 99\r\n\r\n",
        ]
        slow = [await Connection.open(daphne.port) for _ in starts]
        for connection, start in zip(slow, starts, strict=True):
            await connection.send(start)
        answers = [asyncio.create_task(connection.answer()) for connection in slow]
        while not all(answer.done() for answer in answers):
            for connection in slow:
                await connection.send(b"x")
            await asyncio.wait(answers, timeout=1.0)
        assert [answer.result().status for answer in answers] == [408, 408, 408]
        assert [await connection.ending() for connection in slow] == ["eof"] * 3
        assert await _holds(daphne, 1)
        held.hang_up()


class TestDraining:
    """What clients see when the server is told to go."""

    async def test_every_held_request_is_answered_and_nobody_sees_a_reset(self) -> None:
        """200 held, idle ones, never used ones, and half-sent requests: answers and ends of file, exit code 0."""
        with serving("daphne") as served:
            idle = [await Connection.open(served.port) for _ in range(20)]
            for connection in idle:
                assert (await connection.get("/api/state")).status == 200
            unused = [await Connection.open(served.port) for _ in range(10)]
            half = [await Connection.open(served.port) for _ in range(20)]
            for connection in half:
                await connection.send(b"POST /api/echo HTTP/1.1\r\nContent-Length: 10\r\n\r\n12345")
            async with connections(served.port, HELD) as connected:
                await _hold(served, connected)
                served.process.send_signal(signal.SIGTERM)
                answers = [await connection.answer() for connection in connected]
                assert {(a.status, a.json["outcome"], a.closes) for a in answers} == {
                    (200, "DRAINING", True)
                }
                for connection in half[:10]:
                    await connection.send(b"67890")
                finished = [await connection.answer() for connection in half[:10]]
                assert {(a.status, a.json["length"], a.closes) for a in finished} == {
                    (200, 10, True)
                }
                assert {(await connection.answer()).status for connection in half[10:]} == {408}
                everybody = [*connected, *idle, *unused, *half]
                assert {await connection.ending() for connection in everybody} == {"eof"}
            assert await asyncio.to_thread(served.process.wait, 10) == 0
            assert "Traceback" not in served.output

    async def test_connections_in_the_kernels_queue_are_served_before_the_port_closes(self) -> None:
        """They connected to a server that was there; closing the port on them would reset them. And the time to answer
        begins with the last of them: a machine may have other things to do for longer than a drain takes."""
        with serving("daphne") as served:
            async with connections(served.port, 1) as (held,):
                await _hold(served, [held])
                served.process.send_signal(signal.SIGTERM)
                assert (await held.answer()).json["outcome"] == "DRAINING"
            # While it can't accept, the time in which it would have passes.
            served.process.send_signal(signal.SIGSTOP)
            queued = [await Connection.open(served.port) for _ in range(100)]
            for connection in queued[1:]:
                await connection.ask("/plain")
            await queued[0].ask("/slow?seconds=0.5")
            await asyncio.sleep(2.5)
            served.process.send_signal(signal.SIGCONT)
            answers = [await connection.answer() for connection in queued]
            assert {(answer.status, answer.closes) for answer in answers} == {(200, True)}
            assert await asyncio.to_thread(served.process.wait, 10) == 0

    async def test_an_answer_that_says_close_is_the_last(self, served: Served) -> None:
        """Twisted would heed only what the request says."""
        asking = await Connection.open(served.port)
        assert (await asking.get("/api/last")).closes
        assert await asking.ending() == "eof"

    async def test_clients_that_keep_coming_see_answers_or_refusals_and_no_reset(self) -> None:
        """Connecting and asking all through the drain, also Django's own views, until the port is closed."""
        with serving("daphne") as served:
            await _held(served)
            hammering = [asyncio.create_task(hammer(served.port)) for _ in range(20)]
            await asyncio.sleep(0)
            served.process.send_signal(signal.SIGTERM)
            endings = [ending for client in await asyncio.gather(*hammering) for ending in client]
            assert set(endings) == {"answered", "refused"}
            assert await asyncio.to_thread(served.process.wait, 10) == 0

    @pytest.mark.parametrize("server", ["uvicorn", "granian"])
    async def test_other_servers_answer_every_held_request_and_exit(self, server: str) -> None:
        """Their own handlers alone would wait for the polls (uvicorn) or drop them."""
        with serving(server) as served:
            async with connections(served.port, HELD) as connected:
                await _hold(served, connected)
                served.process.send_signal(signal.SIGTERM)
                answers = [await connection.answer() for connection in connected]
                assert {(a.status, a.json["outcome"], a.closes) for a in answers} == {
                    (200, "DRAINING", True)
                }
            exit_code = await asyncio.to_thread(served.process.wait, 20)
            # uvicorn ends by raising the signal it was sent again.
            assert exit_code == {"uvicorn": -signal.SIGTERM, "granian": 0}[server]

    async def test_a_view_that_outlasts_the_drain_is_answered_with_503(self) -> None:
        """A slow view of the project can't keep the server, and its client is told."""
        with serving("daphne") as served:
            asking = await Connection.open(served.port)
            await asking.ask("/slow?seconds=4")
            await _held(served)
            served.process.send_signal(signal.SIGTERM)
            answer = await asking.answer()
            assert (answer.status, answer.json["type"]) == (503, "/problems/unavailable")
            assert answer.headers["retry-after"] == "2"
            assert await asking.ending() == "eof"

    async def test_ctrl_c_drains_as_well(self) -> None:
        """SIGINT is SIGTERM."""
        with serving("daphne") as served:
            async with connections(served.port, 3) as connected:
                await _hold(served, connected)
                served.process.send_signal(signal.SIGINT)
                assert {(await connection.answer()).status for connection in connected} == {200}
            assert await asyncio.to_thread(served.process.wait, 10) == 0
