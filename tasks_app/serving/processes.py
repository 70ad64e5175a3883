"""The parent of several serving processes: one listening socket each, and a successor for each that dies."""

from __future__ import annotations

import asyncio
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from contextlib import suppress

from tasks_app.errors import ConfigurationError
from tasks_app.events import emit
from tasks_app.loops import pause_after

READY = b"r"
"""What a child says on its leash once it serves. The leash's end tells it that its parent has died."""

# A child that cannot start will not the sixth time either.
_MOST_FAILURES = 5
_LONGEST_PAUSE_SECONDS = 5.0
# Longer than a drain takes; after it a child is killed.
_STOP_SECONDS = 8.0


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
        self._children: dict[int, Process] = {}
        self._unready = set(range(len(listeners)))
        self._gave_up: str | None = None

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT. Raises ConfigurationError if a child can't be started."""
        self._stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        await asyncio.gather(*(self._keep(slot) for slot in range(len(self._listeners))))
        if self._gave_up:
            raise ConfigurationError(self._gave_up)

    def stop(self) -> None:
        """Let every child drain, and start no more. Again does nothing."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        # Each child empties the queue of its socket before it closes it. As long as ours is open it would fill again.
        for listener in self._listeners:
            listener.close()
        self._signal_all(signal.SIGTERM)
        asyncio.get_running_loop().call_later(_STOP_SECONDS, self._signal_all, signal.SIGKILL)

    def _signal_all(self, number: int) -> None:
        for child in self._children.values():
            with suppress(ProcessLookupError):
                child.send_signal(number)

    async def _keep(self, slot: int) -> None:
        failures = 0
        while not self._stopping.is_set():
            failures = 0 if await self._live(slot) else failures + 1
            if failures >= _MOST_FAILURES:
                self._gave_up = (
                    f"A serving process could not start {failures} times in a row; "
                    "its own output, above, says why."
                )
                self.stop()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_after(max(failures, 1), _LONGEST_PAUSE_SECONDS)):
                    await self._stopping.wait()

    async def _live(self, slot: int) -> bool:
        """One child's life in `slot`; True if it came to serve."""
        loop = asyncio.get_running_loop()
        served = False
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with ours, theirs:
            child = await self._start(slot, theirs)
            theirs.close()
            with suppress(ConnectionError):
                served = await loop.sock_recv(ours, 1) == READY
            if served:
                self._note_ready(slot)
            exit_code = await child.wait()
        del self._children[slot]
        if not self._stopping.is_set():
            emit("server.died", slot=slot, process=child.pid, exit_code=exit_code)
        return served

    async def _start(self, slot: int, leash: socket.socket) -> Process:
        fd = self._listeners[slot].fileno()
        child = await asyncio.create_subprocess_exec(
            *self._command,
            "--fd",
            str(fd),
            "--leash",
            str(leash.fileno()),
            pass_fds=(fd, leash.fileno()),
        )
        self._children[slot] = child
        if self._stopping.is_set():
            child.terminate()
        return child

    def _note_ready(self, slot: int) -> None:
        if slot in self._unready:
            self._unready.discard(slot)
            if not self._unready:
                self._when_ready()
