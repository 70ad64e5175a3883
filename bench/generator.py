"""The load generator: a process that sends requests it was given and notes the moment each answer was complete.

Plain sockets and one selector, so that it costs next to nothing beside what it measures.
"""

from __future__ import annotations

import multiprocessing
import re
import selectors
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from bench.errors import BenchError
from bench.machine import pin

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CONNECT_SECONDS = 15.0
_READ_BYTES = 65_536
# Added to what a command may take by itself before its process is given up.
_PATIENCE_SECONDS = 30.0


RESET = "the connection was reset"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came on a connection, when it was complete (monotonic clock, the same in every process), and if it fits.

    `text` is what did not fit: an answer, `RESET`, or nothing where the connection just ended.
    """

    connection: int
    at: float
    fits: bool
    text: str


class Generator:
    """The process, seen from outside. One command at a time; `begin` and `finish` let the caller act in between."""

    def __init__(self, core: int | None = None, load: type[Load] | None = None) -> None:
        """On `core` alone if one is given. The commands are the methods of `load`, `Load` if none is given."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, core, load or Load), daemon=True
        )
        self._process.start()
        theirs.close()
        self._until = 0.0

    def __enter__(self) -> Generator:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.join()

    def connect(self, port: int, count: int) -> None:
        """Close what is open, then open `count` connections."""
        self._call("connect", port, count)

    def ask(self, requests: Sequence[tuple[int, bytes]]) -> None:
        """Send each request on its connection."""
        self._call("ask", requests)

    def collect(self, count: int, within: float, expected: bytes) -> list[Answer]:
        """Wait for `count` answers, each of which should contain `expected`; fewer after `within` seconds."""
        self.begin("collect", count, within, expected, within=within)
        return list(self.finish())

    def begin(self, command: str, *arguments: Any, within: float = 0.0) -> None:
        """Start a command and don't wait for it."""
        self._until = time.monotonic() + within + _PATIENCE_SECONDS
        self._pipe.send((command, arguments))

    def finish(self) -> Any:
        """Wait for the command that was begun. Raises BenchError where it failed."""
        if not self._pipe.poll(max(0.0, self._until - time.monotonic())):
            raise BenchError("The load generator did not come back; the machine is too busy.")
        outcome = self._pipe.recv()
        if isinstance(outcome, BenchError):
            raise outcome
        return outcome

    def _call(self, command: str, *arguments: Any) -> Any:
        self.begin(command, *arguments)
        return self.finish()


@dataclass(slots=True)
class Client:
    """One connection of keep-alive HTTP/1.1."""

    index: int
    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)
    ended: bool = False
    asked: bool = False
    """Is an answer owed?"""

    def read(self) -> bool:
        """Take what has come; True when an answer is complete, or the connection has ended."""
        try:
            piece = self.socket.recv(_READ_BYTES)
        except ConnectionError:
            self.received = bytearray(RESET.encode())
            piece = b""
        self.ended = not piece
        self.received += piece
        return self.ended or self._is_complete()

    def _is_complete(self) -> bool:
        head = self.received.find(b"\r\n\r\n")
        if head < 0:
            return False
        length = _LENGTH.search(self.received, 0, head + 2)
        return length is not None and len(self.received) >= head + 4 + int(length[1])

    def take(self, expected: bytes) -> Answer:
        """The complete answer."""
        at = time.monotonic()
        fits = self.received.startswith(b"HTTP/1.1 200") and expected in self.received
        text = "" if fits else self.received.decode("utf-8", "replace")
        self.received.clear()
        self.asked = False
        return Answer(self.index, at, fits, text)


class Load:
    """The commands, as the process carries them out."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.clients: list[Client] = []

    def connect(self, port: int, count: int) -> None:
        """Close what is open, then open `count` connections."""
        for client in self.clients:
            with suppress(KeyError):
                self.selector.unregister(client.socket)
            client.socket.close()
        self.clients = [Client(index, _open(port)) for index in range(count)]
        for client in self.clients:
            self.selector.register(client.socket, selectors.EVENT_READ, client)

    def ask(self, requests: Sequence[tuple[int, bytes]]) -> None:
        """Send each request on its connection."""
        for index, request in requests:
            self.clients[index].socket.sendall(request)
            self.clients[index].asked = True

    def collect(self, count: int, within: float, expected: bytes) -> list[Answer]:
        """Wait for `count` answers that should contain `expected`."""
        deadline = time.monotonic() + within
        answers: list[Answer] = []
        while len(answers) < count and (left := deadline - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                client = key.data
                # A connection that ends after its answer ends as it may.
                if client.read() and client.asked:
                    answers.append(client.take(expected))
                if client.ended:  # it would be readable for ever
                    self.selector.unregister(client.socket)
        return answers


def _open(port: int) -> socket.socket:
    try:
        return socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS)
    except OSError as error:
        raise BenchError(f"The server took no more connections ({error}).") from error


def _serve(pipe: Connection, core: int | None, kind: type[Load]) -> None:
    if core is not None:
        pin(0, core)
    load = kind()
    while True:
        try:
            command, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(getattr(load, command)(*arguments))
        except BenchError as error:
            pipe.send(error)
