"""The parent of several serving processes: one listening socket each, and a successor for each that dies."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum

from asyncpoll import children
from tasks_app.errors import ConfigurationError
from tasks_app.events import emit

READY = b"r"
"""What a child says on its leash once it serves. The leash's end tells it that its parent has died."""

# A child that cannot start will not the sixth time either.
_MOST_FAILURES = 5


class Word(Enum):
    """What the parent says to a child on its leash, a byte each. The end of the leash is `LAST` as well."""

    HANDED_OVER = b"h"
    """Another process serves the socket now: accept no more, and go."""

    LAST = b"l"
    """The parent has closed its copy of the socket, and nobody will serve it: empty its queue, and go."""


class Parent:
    """Keeps one child process on each of `listeners`, each started with `command` and two more arguments.

    The listeners stay open here while their children come and go, so that what a dead child had in its queue waits for
    its successor.
    """

    def __init__(
        self,
        command: Sequence[str],
        listeners: Sequence[socket.socket],
        when_ready: Callable[[], object],
    ) -> None:
        self._command = command
        self._listeners = listeners
        self._when_ready = when_ready

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT; SIGHUP replaces the children, one after the other.

        Raises ConfigurationError if a child can't be started.
        """
        self._asked = asyncio.Event()
        self._unready = set(range(len(self._listeners)))
        self._slots = [
            _Slot(number, self._command, listener, self._note_ready)
            for number, listener in enumerate(self._listeners)
        ]
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGHUP, self._on_hangup, _has_terminal()
        )
        await children.supervise(self._slots, self._replace_when_asked(), on_stop=self._let_go)

    def _on_hangup(self, had_terminal: bool) -> None:
        """The same signal says that the terminal in which we were started was closed, and that is the end."""
        if had_terminal and not _has_terminal():
            signal.raise_signal(signal.SIGTERM)
        else:
            self._asked.set()

    async def _replace_when_asked(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            emit("server.restarting", processes=len(self._slots))
            if await self._replace_all():
                emit("server.restarted", processes=len(self._slots))

    async def _replace_all(self) -> bool:
        for slot in self._slots:
            if not await slot.replace():
                emit("server.restart_failed", slot=slot.number)
                return False
        return True

    def _let_go(self) -> None:
        # Each child empties the queue of its socket before it closes it. As long as ours is open it would fill again.
        for listener in self._listeners:
            listener.close()
        for slot in self._slots:
            slot.say_last()

    def _note_ready(self, slot: int) -> None:
        if slot in self._unready:
            self._unready.discard(slot)
            if not self._unready:
                self._when_ready()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


class _Slot(children.Child):
    """Who serves one of the sockets."""

    first_pause_seconds = 0.1
    longest_pause_seconds = 5.0
    # Longer than a drain takes.
    stop_seconds = 8.0

    def __init__(
        self,
        number: int,
        command: Sequence[str],
        listener: socket.socket,
        note_ready: Callable[[int], object],
    ) -> None:
        super().__init__()
        self.number = number
        self._command = command
        self._listener = listener
        self._note_ready = note_ready
        self._leashes: dict[Process, socket.socket] = {}
        self._failures = 0

    async def start(self) -> Process:
        """On the same socket, with a leash of its own."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        fds = (self._listener.fileno(), theirs.fileno())
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *self._command, "--fd", str(fds[0]), "--leash", str(fds[1]), pass_fds=fds
            )
        self._leashes[process] = ours
        return process

    async def is_up(self, process: Process) -> bool:
        """Wait for its word."""
        served = False
        with suppress(ConnectionError):
            served = await asyncio.get_running_loop().sock_recv(self._leashes[process], 1) == READY
        if served:
            self._note_ready(self.number)
        return served

    def died(self, end: children.End) -> None:
        """Tell; give up when none has come to serve for several times."""
        emit("server.died", slot=self.number, process=end.pid, exit_code=end.code)
        self._failures = 0 if end.was_up else self._failures + 1
        if self._failures >= _MOST_FAILURES:
            raise ConfigurationError(
                f"A serving process could not start {self._failures} times in a row; "
                "its own output, above, says why."
            )

    def relieve(self, process: Process) -> None:
        """Its successor accepts from now on."""
        self._say(Word.HANDED_OVER, self._leashes[process])

    def forget(self, process: Process) -> None:
        """Its end of the leash is closed already."""
        self._leashes.pop(process).close()

    def say_last(self) -> None:
        """While one replaces the other there are two, and both leave."""
        self._say(Word.LAST, *self._leashes.values())

    def _say(self, word: Word, *leashes: socket.socket) -> None:
        for leash in leashes:
            with suppress(OSError):
                leash.send(word.value)
