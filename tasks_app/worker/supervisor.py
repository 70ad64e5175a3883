"""Several worker processes under one parent, which restarts those that die and passes on its own end."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable
from contextlib import suppress

from django.utils.autoreload import get_child_arguments

from tasks_app.events import emit
from tasks_app.loops import Loop, pause_after

# Tells a child whose child it is, so that it does not outlive a parent that was killed.
_PARENT_VARIABLE = "ASYNCPOLL_WORKER_PARENT"
_LONGEST_PAUSE_SECONDS = 15.0
# A child that lived this long had started well: its next death is a first one.
_SETTLED_SECONDS = 30.0
# Beyond its grace a child needs this for the database; then it is stuck.
_STUCK_SECONDS = 20.0
_LOOK_SECONDS = 1.0
_NEVER_SECONDS = 86_400.0


def supervise(processes: int, grace_seconds: float) -> None:
    """Run this command in `processes` children with `--processes 1`, until SIGTERM or SIGINT has ended them all."""
    asyncio.run(_Supervisor(processes, grace_seconds).run())


class ParentWatch(Loop):
    """In a child: calls `orphaned` once the parent is gone. Does nothing in a process that has no such parent."""

    name = "parent watch"

    def __init__(self, orphaned: Callable[[], None]) -> None:
        super().__init__()
        self._parent = os.environ.get(_PARENT_VARIABLE, "")
        self._orphaned = orphaned
        self.has_parent = self._parent == str(os.getppid())

    async def step(self) -> float:
        """Look once."""
        if not self.has_parent or str(os.getppid()) == self._parent:
            return _LOOK_SECONDS
        self._orphaned()
        return _NEVER_SECONDS


class _Supervisor:
    """Keeps `processes` children alive."""

    def __init__(self, processes: int, grace_seconds: float) -> None:
        self._processes = processes
        self._longest_end = grace_seconds + _STUCK_SECONDS
        self._stopping = asyncio.Event()
        self._children: set[Process] = set()

    async def run(self) -> None:
        """Until a signal, and then until every child has ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        await asyncio.gather(*(self._keep() for _ in range(self._processes)))

    def _stop(self) -> None:
        self._stopping.set()
        for child in self._children:
            _send(child, signal.SIGTERM)
        asyncio.get_running_loop().call_later(self._longest_end, self._kill)

    def _kill(self) -> None:
        for child in self._children:
            _send(child, signal.SIGKILL)

    async def _keep(self) -> None:
        deaths = 0
        while not self._stopping.is_set():
            started = time.monotonic()
            code, pid = await self._live()
            if self._stopping.is_set():
                return
            deaths = 1 if time.monotonic() - started >= _SETTLED_SECONDS else deaths + 1
            pause = pause_after(deaths, _LONGEST_PAUSE_SECONDS)
            emit("worker.died", pid=pid, code=code, deaths=deaths, pause=pause)
            await self._rest(pause)

    async def _live(self) -> tuple[int, int]:
        child = await asyncio.create_subprocess_exec(
            *get_child_arguments(),
            "--processes",
            "1",
            stdin=DEVNULL,
            env={**os.environ, _PARENT_VARIABLE: str(os.getpid())},
        )
        self._children.add(child)
        if self._stopping.is_set():
            _send(child, signal.SIGTERM)
        code = await child.wait()
        self._children.discard(child)
        return code, child.pid

    async def _rest(self, pause: float) -> None:
        try:
            async with asyncio.timeout(pause):
                await self._stopping.wait()
        except TimeoutError:
            return


def _send(child: Process, number: int) -> None:
    with suppress(ProcessLookupError):
        child.send_signal(number)
