"""More connections than a process may have, and clients that do not read: it serves on, and forgets them."""

from __future__ import annotations

import asyncio
import errno
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.acceptance.processes import ask
from tests.holdsite.client import Connection
from tests.holdsite.servers import Served, serving
from tests.support import aeventually

FLOOD = 20_000
# What a test process needs beside its connections.
RESERVED = 300
FLOOD_SECONDS = 60.0
HALF = b"GET /plain HTTP/1.1\r\n"


@contextmanager
def open_files(most: int) -> Iterator[int]:
    """Let this process, and those that it starts, open up to `most` files, or as many as the machine allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    try:
        yield allowed
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def connect(port: int) -> socket.socket | None:
    """A connection on which half a request was sent; None if the server or the machine refuses it."""
    loop = asyncio.get_running_loop()
    try:
        client = socket.socket()
    except OSError as error:
        assert error.errno == errno.EMFILE
        return None
    client.setblocking(False)
    try:
        await loop.sock_connect(client, ("127.0.0.1", port))
        client.send(HALF)
    except OSError:
        client.close()
        return None
    return client


async def flood(port: int, count: int) -> list[socket.socket]:
    """As many of `count` connections as can be had in a bounded time."""
    opened: list[socket.socket] = []
    loop = asyncio.get_running_loop()
    deadline = loop.time() + FLOOD_SECONDS
    for begun in range(0, count, 500):
        if loop.time() > deadline:
            break
        several = await asyncio.gather(*(connect(port) for _ in range(min(500, count - begun))))
        opened += [client for client in several if client is not None]
    return opened


def files(served: Served) -> int:
    """Files that the server has open."""
    return psutil.Process(served.process.pid).num_fds()


async def files_of_a_warm_one(served: Served) -> int:
    """The same, once it has answered and has all that it keeps."""
    for path in ("/plain", "/api/state", "/plain"):
        assert (await ask(served.port, path)).status == 200
    return files(served)


@pytest.mark.parametrize("server_files", [700, None], ids=["a few files", "all files there are"])
async def test_a_flood_of_connections_leaves_the_process_serving(server_files: int | None) -> None:
    """Each with half a request. What is held is answered, and when the flood is over everything is as it was."""
    with open_files(FLOOD + RESERVED) as allowed:
        with serving("daphne", open_files=server_files) as served:
            before = await files_of_a_warm_one(served)
            held = await Connection.open(served.port)
            await held.ask("/api/hold")
            opened = await flood(served.port, (2_000 if server_files else allowed - RESERVED))
            assert server_files or len(opened) >= 0.95 * (allowed - RESERVED)
            for client in opened:
                client.close()
            await aeventually(lambda: _answers(served.port))
            await aeventually(lambda: files(served) <= before + 5)
            assert (await ask(served.port, "/api/state")).json["held"] == 1
            served.process.send_signal(signal.SIGTERM)
            assert (await held.answer()).json["outcome"] == "DRAINING"
            assert await asyncio.to_thread(served.process.wait, 20) == 0


async def _answers(port: int) -> bool:
    """True if a new client is served. One that comes while there is no file left is hung up on."""
    try:
        return (await ask(port, "/plain")).status == 200
    except (ConnectionError, asyncio.IncompleteReadError):
        return False


async def test_clients_that_do_not_read_cost_nobody_else_anything() -> None:
    """50 that ask for a megabyte and leave it in the buffers; others are answered, and their end is theirs alone."""
    with serving("daphne") as served:
        before = await files_of_a_warm_one(served)
        slow = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(50)]
        for client in slow:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(b"GET /large?bytes=1000000 HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        for _ in range(20):
            assert (await ask(served.port, "/plain")).status == 200
        memory = psutil.Process(served.process.pid).memory_info().rss
        assert memory < 400_000_000  # 50 answers wait, and not 1,000
        for client in slow:
            client.close()
        await aeventually(lambda: files(served) <= before + 5)


async def test_a_client_that_shuts_down_its_side_has_hung_up() -> None:
    """Nothing tells it from one that is gone: its hold ends at once, and so does the connection."""
    with serving("daphne") as served:
        before = await files_of_a_warm_one(served)
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.sendall(b"GET /api/hold HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await aeventually(lambda: _held(served.port, 1))
            client.shutdown(socket.SHUT_WR)
            await aeventually(lambda: _held(served.port, 0))
            client.settimeout(20)
            assert await asyncio.to_thread(client.recv, 1000) == b""
        await aeventually(lambda: files(served) <= before + 1)


async def _held(port: int, count: int) -> bool:
    return bool((await ask(port, "/api/state")).json["held"] == count)
