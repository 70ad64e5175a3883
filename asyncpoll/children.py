"""Child processes that are started, started again when they end, and stopped together within a bounded time.

Web processes, workers, and what `manage.py up` runs are kept by this; what differs is a subclass of `Child`.
"""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

# A child that lived this long had started well: its next death is a first one.
SETTLED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended, how many did so soon in a row, and how long until the next is started."""

    pid: int
    code: int
    was_up: bool
    lived_seconds: float
    deaths: int
    pause_seconds: float

    @property
    def how(self) -> str:
        """The exit code in words."""
        if self.code < 0:
            return f"was killed by signal {-self.code}"
        return f"ended with exit code {self.code}"


class Child:
    """Keeps a process running: one at a time, or two while one replaces the other.

    A subclass gives `start` and `died`.
    """

    first_pause_seconds = 0.5
    longest_pause_seconds = 15.0
    stop_seconds = 5.0
    """How long a process that was told to stop may take before it is killed."""

    def __init__(self) -> None:
        self.processes: set[Process] = set()
        self._current: Process | None = None
        self._changing = asyncio.Lock()

    async def start(self) -> Process:
        """Start a process."""
        raise NotImplementedError

    def died(self, end: End) -> None:
        """A process ended by itself; another will be started. Raises to give up: then all children are stopped."""
        raise NotImplementedError

    async def is_up(self, process: Process) -> bool:
        """Wait until the process does its work; False if it ends instead."""
        return process.returncode is None

    def relieve(self, process: Process) -> None:
        """Another does its work now; it will be told to stop."""

    def hurry(self, process: Process) -> None:
        """Somebody asked for the end a second time."""

    def kill(self, process: Process) -> None:
        """Its time is up."""
        with suppress(ProcessLookupError):
            process.kill()

    async def clean_up(self, process: Process) -> None:
        """The process ended by itself; what it left behind must be gone before the next is started."""

    def forget(self, process: Process) -> None:
        """Nothing is left of the process."""

    async def keep(self) -> None:
        """Start a process, and another whenever it ends, until cancelled. Raises what `died` raises."""
        loop = asyncio.get_running_loop()
        deaths = 0
        while True:
            began = loop.time()
            process, was_up = await self._until_ended()
            lived = loop.time() - began
            deaths = 1 if lived >= SETTLED_SECONDS else deaths + 1
            pause = restart_delay(deaths, self.first_pause_seconds, self.longest_pause_seconds)
            self.died(End(process.pid, process.returncode or 0, was_up, lived, deaths, pause))
            await asyncio.sleep(pause)

    async def replace(self) -> bool:
        """Start a process beside the present one and stop that once the new one is up.

        False if it does not come up, and then nothing has changed.
        """
        async with self._changing:
            successor = await self._launch()
            if not await self.is_up(successor):
                await self._end(successor)
                return False
            old, self._current = self._current, successor
        if old in self.processes:
            self.relieve(old)
            await self._end(old)
        return True

    async def end(self) -> None:
        """Stop whatever runs; kill what is left after `stop_seconds`."""
        await asyncio.gather(*map(self._end, list(self.processes)))

    async def _until_ended(self) -> tuple[Process, bool]:
        """The process whose end is one, not a replacement; and if it was up."""
        process, was_up = await self._next()
        while True:
            await process.wait()
            # Whoever is being replaced may die; that its successor can't start is what makes it a death.
            async with self._changing:
                if process is self._current:
                    await self.clean_up(process)
                    self._forget(process)
                    return process, was_up
                assert self._current is not None
                process, was_up = self._current, True

    async def _next(self) -> tuple[Process, bool]:
        """A new process, unless a dead one has been replaced meanwhile; and if it came up."""
        async with self._changing:
            if self._current in self.processes:
                return self._current, True
            self._current = process = await self._launch()
        return process, await self.is_up(process)

    async def _launch(self) -> Process:
        process = await self.start()
        self.processes.add(process)
        return process

    async def _end(self, process: Process) -> None:
        terminate(process)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.stop_seconds):
                await process.wait()
        self.kill(process)
        await process.wait()
        self._forget(process)

    def _forget(self, process: Process) -> None:
        if process in self.processes:
            self.processes.discard(process)
            self.forget(process)


async def supervise(
    children: Sequence[Child],
    *more: Coroutine[Any, Any, None],
    signals: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGINT),
    on_stop: Callable[[], object] = lambda: None,
) -> None:
    """Keep the children, and run `more` beside them, until one of `signals` arrives; then stop the children.

    `on_stop` is called before they are told. A second signal hurries them. Raises what gives up, after the same end.
    """
    stop = _on_signals(signals, children)
    works = [*more, *(child.keep() for child in children)]
    tasks = [asyncio.create_task(work) for work in works]
    stopping = asyncio.create_task(stop.wait())
    try:
        await _first_to_fail(stopping, tasks)
    finally:
        stop.set()
        on_stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(child.end() for child in children))


def _on_signals(signals: Sequence[signal.Signals], children: Sequence[Child]) -> asyncio.Event:
    """What the first one sets; the second hurries the children."""
    stop = asyncio.Event()

    def on_signal() -> None:
        if not stop.is_set():
            stop.set()
            return
        for child in children:
            for process in child.processes:
                child.hurry(process)

    loop = asyncio.get_running_loop()
    for number in signals:
        loop.add_signal_handler(number, on_signal)
    return stop


def restart_delay(deaths: int, first_seconds: float, longest_seconds: float) -> float:
    """Seconds before the restart that follows the `deaths`-th death in a row: doubling, bounded."""
    return min(first_seconds * 2 ** min(deaths - 1, 16), longest_seconds)


def terminate(process: Process) -> None:
    """Ask a process to end, unless it has."""
    with suppress(ProcessLookupError):
        process.terminate()


async def _first_to_fail(stopping: asyncio.Task[bool], tasks: list[asyncio.Task[None]]) -> None:
    pending: set[asyncio.Task[Any]] = {stopping, *tasks}
    while not stopping.done():
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
