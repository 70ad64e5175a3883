"""What `manage.py up` runs, as children of its own.

Each leads a process group of its own: a Ctrl-C in the terminal reaches only us, and we tell the children. Should we
be killed, the leash ends them.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asyncpoll import children
from asyncpoll.leash import Leash, end_groups, signal_group

logger = logging.getLogger("asyncpoll.up")

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A web process drains in 2.5 s and a worker hands back what it can't finish; with the database's end, all within 10 s.
STOP_SECONDS = 5.0
# Deaths in a row before anything ever worked after which waiting on is no use.
HOPELESS_DEATHS = 3


class ChildrenFailed(RuntimeError):
    """A child never came up. The message names it and how it ended."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run, and what to call it."""

    name: str
    command: Sequence[str]


async def supervise(
    specs: Sequence[ChildSpec],
    environment: Mapping[str, str],
    until_ready: Callable[[], Awaitable[None]],
    when_ready: Callable[[], object],
    *more: Coroutine[Any, Any, None],
    on_stop: Callable[[], object] = lambda: None,
) -> None:
    """Run the children until a stop signal arrives; then stop them all. A second signal kills what is left.

    Calls `when_ready` once, after `until_ready` has returned. Raises ChildrenFailed if a child keeps dying before.
    """
    ready = asyncio.Event()

    async def announce() -> None:
        await until_ready()
        ready.set()
        when_ready()

    leash = Leash()
    kept = [_GroupLeader(spec, environment, leash, ready) for spec in specs]
    try:
        await children.supervise(kept, announce(), *more, signals=STOP_SIGNALS, on_stop=on_stop)
    finally:
        leash.close()


class _GroupLeader(children.Child):
    """One child, with whatever it starts itself."""

    def __init__(
        self, spec: ChildSpec, environment: Mapping[str, str], leash: Leash, ready: asyncio.Event
    ) -> None:
        super().__init__()
        self.stop_seconds = STOP_SECONDS
        self._spec = spec
        self._environment = environment
        self._leash = leash
        self._ready = ready

    async def start(self) -> Process:
        """In a group of its own."""
        program, *arguments = self._spec.command
        process = await asyncio.create_subprocess_exec(
            program, *arguments, env=self._environment, stdin=DEVNULL, process_group=0
        )
        self._leash.hold(process.pid)
        return process

    def died(self, end: children.End) -> None:
        """Say so; give up if it never worked."""
        how = f"{self._spec.name} {end.how} after {end.lived_seconds:.0f} s"
        if end.deaths >= HOPELESS_DEATHS and not self._ready.is_set():
            raise ChildrenFailed(
                f"{how}, {HOPELESS_DEATHS} times in a row and never ready; what it wrote above says why."
            )
        times = f", {end.deaths} times in a row" if end.deaths > 1 else ""
        logger.error("%s%s; starting it again in %g s", how, times, end.pause_seconds)

    def hurry(self, process: Process) -> None:
        """At once, then."""
        self.kill(process)

    def kill(self, process: Process) -> None:
        """With all its descendants."""
        signal_group(process.pid, signal.SIGKILL)

    async def clean_up(self, process: Process) -> None:
        """What it had started itself goes first, or the port would still be taken."""
        if signal_group(process.pid, signal.SIGTERM):
            await asyncio.to_thread(end_groups, [process.pid], STOP_SECONDS)

    def forget(self, process: Process) -> None:
        """Its number may be somebody else's from now on."""
        self._leash.release(process.pid)
