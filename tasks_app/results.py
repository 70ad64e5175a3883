"""A stored task as the result that Django's Tasks framework gives to its users."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Final

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from asyncpoll.contract import Status
from tasks_app.compat import Task, TaskError, TaskResult, TaskResultStatus
from tasks_app.errors import UnknownTask
from tasks_app.store.results import Recalled

_STATUSES: Final[Mapping[Status, TaskResultStatus]] = {
    Status.PENDING: TaskResultStatus.READY,
    Status.RUNNING: TaskResultStatus.RUNNING,
    Status.SUCCESS: TaskResultStatus.SUCCESSFUL,
    Status.FAILED: TaskResultStatus.FAILED,
    Status.CANCELLED: TaskResultStatus.FAILED,
}
_CANCELLED = "tasks_app.errors.Cancelled"
# A task that code outside the workers reported as failed has a message and no exception.
_UNKNOWN_CLASS = "tasks_app.errors.TasksError"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedResult(TaskResult):  # type: ignore[misc]  # it is frozen, and its stub does not say so
    """A TaskResult, and what whoever waits for the task over HTTP sees of it."""

    version: int
    """Grows by one with each visible change; a client's cursor."""
    progress: float | None
    """A fraction from 0 to 1, as the task reported it."""
    message: str
    """What the task said last."""
    cancelled: bool
    """It was cancelled, or was asked to stop and still runs. The framework has no status for it: FAILED it is."""

    def refresh(self) -> None:
        """Read everything but the task itself again."""
        self._take(self.task.get_backend().get_result(self.id))

    async def arefresh(self) -> None:
        """`refresh` from async code."""
        self._take(await self.task.get_backend().aget_result(self.id))

    def _take(self, newer: TaskResult) -> None:
        for field in fields(self):
            if field.name != "task":
                object.__setattr__(self, field.name, getattr(newer, field.name))


def find_task(path: str) -> Task:
    """The task of the framework that is declared at `path`. Raises UnknownTask."""
    try:
        found = import_string(path)
    except Exception as error:
        # A module may raise anything while it is imported.
        raise UnknownTask(
            f"{path} can't be imported here ({type(error).__name__}: {error}); tasks that were enqueued before it was "
            "renamed or removed can't run any more."
        ) from error
    if not isinstance(found, Task):
        raise UnknownTask(
            f"{path} is {type(found).__name__}, not a task; decorate the function of that name with @task."
        )
    return found


def tracked(recalled: Recalled, declared: Task) -> TrackedResult:
    """`recalled`, a call of `declared`, as a result."""
    result = TrackedResult(
        task=_as_enqueued(declared, recalled),
        id=str(recalled.id),
        status=_STATUSES[recalled.status],
        enqueued_at=_moment(recalled.created_at),
        started_at=_moment(recalled.first_started_at),
        last_attempted_at=_moment(recalled.started_at),
        finished_at=_moment(recalled.finished_at),
        args=json.loads(recalled.args),
        kwargs=json.loads(recalled.kwargs),
        backend=recalled.backend,
        errors=_errors(recalled),
        worker_ids=[str(worker) for worker in recalled.workers],
        version=recalled.version,
        progress=recalled.progress,
        message=recalled.message,
        cancelled=_is_cancelled(recalled),
    )
    if recalled.result is not None:
        object.__setattr__(result, "_return_value", json.loads(recalled.result))
    return result


def _as_enqueued(declared: Task, recalled: Recalled) -> Task:
    """`declared` with what `using()` had changed. Not by using(): that validates, and settings change meanwhile."""
    changed = {
        "priority": recalled.priority,
        "queue_name": recalled.queue,
        "backend": recalled.backend,
        "run_after": _moment(recalled.run_at) if recalled.run_at != recalled.created_at else None,
    }
    task = object.__new__(type(declared))
    for field in fields(declared):
        value = changed.get(field.name, getattr(declared, field.name))
        object.__setattr__(task, field.name, value)
    return task


def _errors(recalled: Recalled) -> list[TaskError]:
    """The error of the latest attempt that failed; earlier ones are in the task's history."""
    if recalled.status is Status.CANCELLED:
        text = f"{_CANCELLED}: The task was cancelled.\n"
        return [TaskError(exception_class_path=_CANCELLED, traceback=text)]
    if not recalled.error_type:
        return []
    path = recalled.error_class or _UNKNOWN_CLASS
    shown = path.removeprefix("builtins.")
    return [
        TaskError(
            exception_class_path=path,
            traceback=recalled.traceback or f"{shown}: {recalled.error_message}\n",
        )
    ]


def _is_cancelled(recalled: Recalled) -> bool:
    if recalled.status.is_terminal:
        return recalled.status is Status.CANCELLED
    return recalled.cancel_requested


def _moment(moment: datetime | None) -> datetime | None:
    """`moment` as Django's ORM would give it: in UTC, or naive in the project's zone where USE_TZ is off."""
    if moment is None or timezone.is_naive(moment):
        return moment
    return moment.astimezone(UTC) if settings.USE_TZ else timezone.make_naive(moment)
