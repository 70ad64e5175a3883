"""Several worker processes under one parent, which restarts those that die and passes on its own end."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Sequence

from django.utils.autoreload import get_child_arguments

from asyncpoll import children
from tasks_app.events import emit
from tasks_app.loops import Loop

# Tells a child whose child it is, so that it does not outlive a parent that was killed.
_PARENT_VARIABLE = "ASYNCPOLL_WORKER_PARENT"
# Beyond its grace a child needs this for the database; then it is stuck.
_STUCK_SECONDS = 20.0
_LOOK_SECONDS = 1.0
_NEVER_SECONDS = 86_400.0


def supervise(
    processes: int, grace_seconds: float, options_of: Callable[[int], Sequence[str]]
) -> None:
    """Run this command in `processes` children with `--processes 1`, until SIGTERM or SIGINT has ended them all.

    `options_of` gives what each of them is told besides, by its number from 0.
    """
    numbers = range(processes)
    family = [_WorkerChild(grace_seconds, options_of(number)) for number in numbers]
    asyncio.run(children.supervise(family))


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


class _WorkerChild(children.Child):
    """One worker process."""

    first_pause_seconds = 0.1

    def __init__(self, grace_seconds: float, options: Sequence[str]) -> None:
        super().__init__()
        self._options = options
        self.stop_seconds = grace_seconds + _STUCK_SECONDS

    async def start(self) -> Process:
        """This command once more, for one process."""
        return await asyncio.create_subprocess_exec(
            *get_child_arguments(),
            "--processes",
            "1",
            *self._options,
            stdin=DEVNULL,
            env={**os.environ, _PARENT_VARIABLE: str(os.getpid())},
        )

    def died(self, end: children.End) -> None:
        """Tell; there is always another try."""
        emit("worker.died", pid=end.pid, code=end.code, deaths=end.deaths, pause=end.pause_seconds)

    def hurry(self, process: Process) -> None:
        """A worker gives back at once what it runs when it is told again."""
        children.terminate(process)
