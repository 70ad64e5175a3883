"""One attempt at a task of Django's Tasks framework: its context, and its signals."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import replace
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Any

from asyncpoll.contract import Status
from tasks_app.compat import (
    BaseTaskBackend,
    InvalidTaskBackend,
    Task,
    TaskContext,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from tasks_app.errors import Cancelled, TasksError, UnknownTask
from tasks_app.results import find_task, tracked
from tasks_app.store import Change, Claimed, Committed
from tasks_app.store.results import Recalled, recall_claimed
from tasks_app.worker.outcome import Unfit, class_path, trace_of
from tasks_app.worker.runnable import Runnable


def find(claimed: Claimed) -> Runnable:
    """The function that was enqueued, with its signals around it. Raises UnknownTask."""
    recalled = recall_claimed(claimed)
    attempt = Adopted(recalled, find_task(claimed.name), _sender(recalled))
    if iscoroutinefunction(attempt.func):
        return Runnable(attempt.arun, True, attempt.begin, attempt.ended)
    return Runnable(attempt.run, False, ended=attempt.ended)


class Adopted:
    """Receivers of its signals may raise what they like: the task goes on, and Django logs it."""

    def __init__(self, recalled: Recalled, declared: Task, sender: type[BaseTaskBackend]) -> None:
        self._recalled = recalled
        self._result = tracked(recalled, declared)
        self._sender = sender
        self._context: Context | None = None
        self._error: BaseException | None = None
        self._began_at = time.monotonic()

    @property
    def func(self) -> Callable[..., Any]:
        """The user's function."""
        return self._result.task.func

    def begin(self) -> None:
        """Say that the task started."""
        task_started.send_robust(self._sender, task_result=self._result)
        self._context = copy_context()

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Say that the task started, and call its function."""
        self.begin()
        try:
            return _fit(self.func(*self._leading(), *args, **kwargs))
        except BaseException as error:
            # Kept for receivers of `task_finished`, whatever it is.
            self._error = error
            raise

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """Call a coroutine function, after `begin`."""
        try:
            return _fit(await self.func(*self._leading(), *args, **kwargs))
        except BaseException as error:
            self._error = error
            raise

    def ended(self, change: Change, committed: Committed, reason: str) -> None:
        """Say that the task finished, if its function was begun. Receivers find the error in sys.exc_info()."""
        if self._context is not None:
            self._context.run(self._say_finished, self._outcome(change, committed, reason))

    def _say_finished(self, outcome: Recalled) -> None:
        result = tracked(outcome, self._result.task)
        error = self._error_behind(outcome)
        if error is None:
            task_finished.send_robust(self._sender, task_result=result)
            return
        trace = trace_of(error)
        try:
            raise error
        except BaseException:
            # It is now what sys.exc_info() gives.
            error.__traceback__ = trace
            task_finished.send_robust(self._sender, task_result=result)

    def _outcome(self, change: Change, committed: Committed, reason: str) -> Recalled:
        assert self._recalled.started_at is not None
        took = timedelta(seconds=time.monotonic() - self._began_at)
        outcome = replace(
            self._recalled,
            status=committed.status,
            version=committed.version,
            progress=change.milestones[-1].progress,
            message=change.milestones[-1].message,
            finished_at=self._recalled.started_at + took,
            result=change.result,
            error_type=change.error_type,
            error_message=change.error_message,
            error_class=change.error_class,
            traceback=change.traceback,
        )
        if committed.status is change.status:
            return outcome
        return replace(outcome, result=None, error_type="Refused", error_message=reason)

    def _error_behind(self, outcome: Recalled) -> BaseException | None:
        if outcome.status is Status.SUCCESS:
            return None
        if outcome.status is Status.CANCELLED:
            return Cancelled(outcome.name, outcome.id)
        error = self._error
        if error is not None and class_path(type(error)) == outcome.error_class:
            return error
        if outcome.error_class == class_path(TimeoutError):
            return TimeoutError(outcome.error_message)
        return TasksError(f"{outcome.error_type}: {outcome.error_message}")

    def _leading(self) -> tuple[Any, ...]:
        return (TaskContext(task_result=self._result),) if self._result.task.takes_context else ()


def _sender(recalled: Recalled) -> type[BaseTaskBackend]:
    try:
        return type(task_backends[recalled.backend])
    except InvalidTaskBackend as error:
        raise UnknownTask(
            f"{recalled.name} was enqueued through TASKS[{recalled.backend!r}], which can't be used here ({error}); "
            "give the workers the TASKS of whoever enqueues."
        ) from error


def _fit(value: Any) -> Any:
    try:
        return normalize_json(value)
    except Exception as error:
        # A value's own methods may raise anything.
        error.add_note(
            "The return value is not JSON serializable: return dicts, lists, strings, numbers, booleans or None."
        )
        return Unfit(error)
