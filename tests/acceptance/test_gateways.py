"""The documented gateways in front of two servers: holds, streams, addresses, and restarts that nobody notices."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.gateways import NAMES, OPERATIONS, gateway
from tests.acceptance.load import Endings, clients
from tests.acceptance.processes import ask
from tests.holdsite.client import Connection
from tests.holdsite.servers import Served, serving
from tests.programs import program
from tests.support import aeventually

POST = ("/api/echo", "POST", b"12345")
HOLD = ("/api/hold?seconds=0.5", "GET", b"")
TRUSTING = {"HOLDSITE_TRUSTED_PROXIES": "127.0.0.1"}
every_gateway = pytest.mark.parametrize("name", NAMES)


@dataclass(frozen=True, slots=True)
class Behind:
    """A gateway's port, and those of its two servers."""

    port: int
    servers: tuple[int, ...]

    async def held(self) -> int:
        """Requests that the servers hold, asked past the gateway."""
        return sum([(await ask(port, "/api/state")).json["held"] for port in self.servers])


@contextmanager
def behind_it(
    name: str, directory: Path, **environment: str
) -> Iterator[tuple[Behind, list[Served]]]:
    """A gateway in front of two servers."""
    with ExitStack() as stack:
        served = [stack.enter_context(serving("daphne", **environment)) for _ in range(2)]
        ports = tuple(server.port for server in served)
        yield Behind(stack.enter_context(gateway(name, directory, *ports)), ports), served


@pytest.fixture(scope="module", params=NAMES)
def behind(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Behind]:
    """For tests that leave everything as it was."""
    directory = tmp_path_factory.mktemp(request.param)
    with behind_it(request.param, directory, **TRUSTING) as (behind, _):
        yield behind


class TestBehindAGateway:
    """What must pass as it is."""

    async def test_the_address_is_the_clients_whatever_it_claims(self, behind: Behind) -> None:
        """Not the gateway's, and not what the client has put into X-Forwarded-For."""
        connection = await Connection.open(behind.port, source="127.0.0.2")
        await connection.ask("/api/client", extra="X-Forwarded-For: 192.0.2.1\r\n")
        assert (await connection.answer()).json == {"address": "127.0.0.2"}

    async def test_what_a_server_has_sent_arrives_at_once(self, behind: Behind) -> None:
        """The first part of an answer is not kept back until the second comes, which is never."""
        connection = await Connection.open(behind.port)
        await connection.ask("/stream")
        assert await connection.until(b"first")
        connection.hang_up()

    async def test_a_held_request_that_hangs_up_is_gone_at_the_server(self, behind: Behind) -> None:
        """The gateway passes the hang-up on."""
        connection = await Connection.open(behind.port)
        await connection.ask("/api/hold")
        await aeventually(lambda: _holds(behind, 1))
        connection.hang_up()
        await aeventually(lambda: _holds(behind, 0))


async def _holds(behind: Behind, count: int) -> bool:
    return await behind.held() == count


async def test_an_address_is_not_believed_from_strangers() -> None:
    """Whoever reaches the server past the gateway is who they are."""
    with serving("daphne", **TRUSTING) as served:
        connection = await Connection.open(served.port, source="127.0.0.3")
        await connection.ask("/api/client", extra="X-Forwarded-For: 192.0.2.1\r\n")
        assert (await connection.answer()).json == {"address": "127.0.0.3"}


@every_gateway
async def test_a_held_request_is_answered_through_the_gateway(name: str, tmp_path: Path) -> None:
    """With the answer that its server gives when it goes away, to many at once."""
    with behind_it(name, tmp_path) as (behind, servers):
        held = [await Connection.open(behind.port) for _ in range(60)]
        for connection in held:
            await connection.ask("/api/hold")
        await aeventually(lambda: _holds(behind, 60))
        for server in servers:
            server.process.send_signal(signal.SIGTERM)
        answers = await asyncio.gather(*(connection.answer() for connection in held))
        assert {(a.status, a.json["outcome"]) for a in answers} == {(200, "DRAINING")}


@every_gateway
async def test_two_servers_restarted_one_after_the_other_show_no_error(
    name: str, tmp_path: Path
) -> None:
    """SIGTERM, its end, a new process on the same port, then the other one, under load: everything answered with 200."""
    with behind_it(name, tmp_path) as (behind, old), ExitStack() as new:
        async with AsyncExitStack() as load:
            seen = [
                await load.enter_async_context(clients(behind.port, 10)),
                await load.enter_async_context(clients(behind.port, 10, POST)),
                await load.enter_async_context(clients(behind.port, 10, keeps=True)),
                await load.enter_async_context(clients(behind.port, 30, HOLD)),
            ]
            for server in old:
                await _more(seen)
                assert await asyncio.to_thread(server.stop) == 0
                restarted = new.enter_context(serving("daphne", port=server.port))
                await aeventually(lambda: _is_used(behind, restarted))  # noqa: B023 - called here
            await _more(seen)
        assert [endings.kinds for endings in seen] == [{"200"}] * 4


async def _is_used(behind: Behind, served: Served) -> bool:
    """True if the gateway asks that server: it must have noticed that it is back before the other one goes."""
    return bool((await ask(behind.port, "/api/state")).json["pid"] == served.process.pid)


async def _more(seen: list[Endings]) -> None:
    """Every kind of client has come again some times."""
    before = [len(endings.answers) for endings in seen]
    await aeventually(
        lambda: all(len(e.answers) > count + 20 for e, count in zip(seen, before, strict=True))
    )


@every_gateway
async def test_a_submission_is_never_sent_twice(name: str, tmp_path: Path) -> None:
    """Servers that read it and hang up: one of them has seen it, once, and the client is told."""
    async with _careless() as (first, seen), _careless() as (second, seen_too):
        with gateway(name, tmp_path, first, second) as port:
            answer = await ask(port, "/api/v1/tasks", "POST", b'{"task": "x"}')
            assert answer.status == 502
            assert [request for request in seen + seen_too if request.startswith(b"POST")] == [
                b"POST /api/v1/tasks HTTP/1.1\r\n"
            ]


@asynccontextmanager
async def _careless() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that is ready, and hangs up on whatever else it has read."""
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readline())
        await reader.readuntil(b"\r\n\r\n")
        if b"/readyz" in seen[-1]:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], seen


@pytest.mark.parametrize("unit", ["asyncpoll-web.service", "asyncpoll-worker.service"])
def test_systemd_has_nothing_to_say_about_the_units(unit: str, tmp_path: Path) -> None:
    """With a Python that exists, as the documented one does not here."""
    text = (
        (OPERATIONS / unit).read_text().replace("/srv/asyncpoll/.venv/bin/python", sys.executable)
    )
    (tmp_path / unit).write_text(text)
    done = subprocess.run(
        [program("systemd-analyze", package="systemd"), "verify", str(tmp_path / unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
