"""Child processes that are started, restarted when they die, and stopped together within a bounded time.

Each child leads a process group of its own: a Ctrl-C in the terminal reaches only us, and we tell the children.
Should we be killed, the leash ends them.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from asyncpoll.leash import Leash, end_groups, signal_group

logger = logging.getLogger("asyncpoll.up")

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A web process drains in 2.5 s and a worker hands back what it can't finish; with the database's end, all within 10 s.
STOP_SECONDS = 5.0
# A child that lived this long had started well: its next death is a first one.
SETTLED_SECONDS = 30.0
# Deaths in a row before anything ever worked after which waiting on is no use.
HOPELESS_DEATHS = 3
_FIRST_DELAY_SECONDS = 0.5
_LONGEST_DELAY_SECONDS = 15.0


class ChildrenFailed(RuntimeError):
    """A child never came up. The message names it and how it ended."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run, and what to call it."""

    name: str
    command: Sequence[str]


def restart_delay(deaths: int) -> float:
    """Seconds before the restart that follows the `deaths`-th death in a row: doubling, bounded."""
    return min(_FIRST_DELAY_SECONDS * 2 ** (deaths - 1), _LONGEST_DELAY_SECONDS)


async def supervise(
    specs: Sequence[ChildSpec],
    environment: Mapping[str, str],
    until_ready: Callable[[], Awaitable[None]],
    when_ready: Callable[[], object],
) -> None:
    """Run the children until a stop signal arrives; then stop them all. A second signal kills what is left.

    Calls `when_ready` once, after `until_ready` has returned. Raises ChildrenFailed if a child keeps dying before.
    """
    stop, hurry, ready = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        (hurry if stop.is_set() else stop).set()

    async def announce() -> None:
        await until_ready()
        ready.set()
        when_ready()

    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, on_signal)
    leash = Leash()
    children = [_Child(spec, environment, leash, ready) for spec in specs]
    tasks = [
        asyncio.create_task(work) for work in (announce(), *(child.keep() for child in children))
    ]
    stopping = asyncio.create_task(stop.wait())
    try:
        await _first_to_fail(stopping, tasks)
    finally:
        stop.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(child.end(hurry) for child in children))
        leash.close()


async def _first_to_fail(stopping: asyncio.Task[bool], tasks: list[asyncio.Task[None]]) -> None:
    pending: set[asyncio.Task[None] | asyncio.Task[bool]] = {stopping, *tasks}
    while not stopping.done():
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


class _Child:
    """One child: at most one process at a time."""

    def __init__(
        self, spec: ChildSpec, environment: Mapping[str, str], leash: Leash, ready: asyncio.Event
    ) -> None:
        self._spec = spec
        self._environment = environment
        self._leash = leash
        self._ready = ready
        self._process: Process | None = None
        self._deaths = 0

    async def keep(self) -> None:
        """Start the child, and start it again whenever it ends. Raises ChildrenFailed."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            process = await self._start()
            await process.wait()
            lived = loop.time() - started
            await self._bury(process)
            self._deaths = 1 if lived >= SETTLED_SECONDS else self._deaths + 1
            how = f"{self._spec.name} {_ended(process)} after {lived:.0f} s"
            if self._deaths >= HOPELESS_DEATHS and not self._ready.is_set():
                raise ChildrenFailed(
                    f"{how}, {HOPELESS_DEATHS} times in a row and never ready; what it wrote above says why."
                )
            delay = restart_delay(self._deaths)
            logger.error("%s; starting it again in %g s (death %d)", how, delay, self._deaths)
            await asyncio.sleep(delay)

    async def end(self, hurry: asyncio.Event) -> None:
        """Ask the process to end; kill it and its descendants after STOP_SECONDS, or at once on `hurry`."""
        process = self._process
        if process is None:
            return
        if process.returncode is None:
            process.terminate()
        waits = [asyncio.create_task(process.wait()), asyncio.create_task(hurry.wait())]
        await asyncio.wait(waits, timeout=STOP_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        signal_group(process.pid, signal.SIGKILL)
        await process.wait()
        for wait in waits:
            wait.cancel()
        self._leash.release(process.pid)

    async def _start(self) -> Process:
        program, *arguments = self._spec.command
        self._process = await asyncio.create_subprocess_exec(
            program, *arguments, env=self._environment, stdin=DEVNULL, process_group=0
        )
        self._leash.hold(self._process.pid)
        return self._process

    async def _bury(self, process: Process) -> None:
        # What it had started itself goes first, or the port would still be taken.
        if signal_group(process.pid, signal.SIGTERM):
            await asyncio.to_thread(end_groups, [process.pid], STOP_SECONDS)
        self._leash.release(process.pid)
        self._process = None


def _ended(process: Process) -> str:
    code = process.returncode or 0
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
