"""How a server stops accepting: what is in its queues is its own to the last, or left to a successor to the last."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tasks_app.serving.daphne_server import DrainingServer
from tasks_app.serving.sockets import listen

on_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux filters sockets"
)


class Port:
    """A port of Twisted's, as far as a drain uses it: it accepts only when told to, one connection at a time."""

    def __init__(self) -> None:
        self.socket = listen("127.0.0.1", 0)
        self.socket.setblocking(False)
        self.address = self.socket.getsockname()
        self.accepted: list[socket.socket] = []
        self.is_reading = True

    def stopReading(self) -> None:
        self.is_reading = False

    def doRead(self) -> None:
        self.accepted.append(self.socket.accept()[0])

    def connectionLost(self, reason: Any) -> None:
        self.socket.close()


@pytest.fixture
def port() -> Iterator[Port]:
    """One that listens."""
    port = Port()
    yield port
    for connection in (port.socket, *port.accepted):
        connection.close()


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    """What they open is closed."""
    with ExitStack() as stack:
        yield stack


def server(port: Port, *, socket_ends: bool) -> DrainingServer:
    """One that has never run, with that port."""
    made = object.__new__(DrainingServer)
    made.socket_ends, made._ports = socket_ends, [port]
    return made


def begin_to_connect(port: Port) -> socket.socket:
    """Without waiting for the answer."""
    client = socket.socket()
    client.setblocking(False)
    assert client.connect_ex(port.address) in (0, errno.EINPROGRESS)
    return client


def end_of(client: socket.socket) -> int:
    """What became of a connection that was begun."""
    poll = select.poll()
    poll.register(client, select.POLLOUT)
    assert poll.poll(10_000)
    return client.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


@pytest.mark.parametrize("socket_ends", [True, False])
async def test_everybody_in_the_queue_is_accepted_before_the_port_closes(
    port: Port, clients: ExitStack, socket_ends: bool
) -> None:
    """Whoever is left in it when it closes is reset."""
    queued = [clients.enter_context(socket.create_connection(port.address)) for _ in range(200)]
    await server(port, socket_ends=socket_ends)._stop_accepting()
    assert len(port.accepted) == 200 and port.socket.fileno() == -1
    for connection in port.accepted:
        connection.sendall(b"x")
    assert {client.recv(1) for client in queued} == {b"x"}


@on_linux
async def test_whoever_connects_while_the_last_are_let_in_is_refused_and_not_reset(
    port: Port, clients: ExitStack
) -> None:
    """Its handshake gets no answer until the port is closed; a connection that nobody accepts would be reset."""
    stopping = asyncio.ensure_future(server(port, socket_ends=True)._stop_accepting())
    await asyncio.sleep(0)
    # Open for those whose handshake had begun, and for nobody else.
    assert not stopping.done() and port.socket.fileno() != -1
    late = clients.enter_context(begin_to_connect(port))
    await stopping
    assert end_of(late) == errno.ECONNREFUSED
    assert not port.accepted


@on_linux
async def test_a_socket_that_others_go_on_to_serve_turns_nobody_away(
    port: Port, clients: ExitStack
) -> None:
    """The filter is the socket's, and would be its successor's as well."""
    with port.socket.dup() as successors:
        await server(port, socket_ends=False)._stop_accepting()
        clients.enter_context(socket.create_connection(port.address, timeout=10))
        assert successors.accept()


def test_who_hands_over_accepts_nobody_any_more(port: Port, clients: ExitStack) -> None:
    """The queue is its successor's, from that moment on."""
    handing = server(port, socket_ends=False)
    handing._drain = object()  # type: ignore[assignment]
    with port.socket.dup() as successors:
        client = clients.enter_context(socket.create_connection(port.address))
        handing.hand_over()
        assert not port.is_reading and port.socket.fileno() == -1 and not port.accepted
        successors.setblocking(True)
        accepted, _ = successors.accept()
        with accepted:
            accepted.sendall(b"x")
            assert client.recv(1) == b"x"
