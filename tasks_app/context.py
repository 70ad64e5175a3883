"""What a running task can say and ask: `current_task()`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol
from uuid import UUID

from tasks_app.errors import NoCurrentTask
from tasks_app.stepbook import StepBook


class CurrentTask(Protocol):
    """The attempt that the calling code belongs to. Usable from sync and async tasks, and from threads they start
    with a copy of their context."""

    @property
    def id(self) -> UUID:
        """The task's id."""

    @property
    def name(self) -> str:
        """The task's declared name."""

    @property
    def owner(self) -> str:
        """Whom the task belongs to."""

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""

    @property
    def cancelled(self) -> bool:
        """True once somebody asked the task to stop; a task that can stop early looks here."""

    @property
    def steps(self) -> StepBook:
        """Where `step` and `step_sync` keep results; not for tasks to use."""

    def raise_if_cancelled(self) -> None:
        """Stop here if somebody asked the task to: call it between items of work. Raises Cancelled, which ends the
        task as CANCELLED. A coroutine needs it only where it works long without an await: there it is cancelled."""

    def report(
        self, progress: float | None = None, message: str = "", data: dict[str, Any] | None = None
    ) -> None:
        """Make a milestone visible to whoever waits. Cheap, never blocks, never raises for a lost connection.

        `progress` is a fraction from 0 to 1; `data` must be JSON. Reports that follow each other faster than ten a
        second are folded into the latest. Raises ValueError for a progress outside 0–1, NotJson for unfit data.
        """


running: ContextVar[CurrentTask | None] = ContextVar("asyncpoll_current_task", default=None)


def current_task() -> CurrentTask:
    """The attempt that the calling code belongs to. Raises NoCurrentTask outside a task."""
    task = running.get()
    if task is None:
        raise NoCurrentTask(
            "current_task() was called outside a running task; call it from code that a worker runs, or pass the "
            "values it needs."
        )
    return task
