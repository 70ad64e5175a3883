"""`@task`: a function that workers run, whose call is a row that can be waited for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from tasks_app import catalogue
from tasks_app.context import current_task
from tasks_app.declaration import Task, TaskHandle
from tasks_app.errors import Cancelled, LeaseLost, Retry
from tasks_app.external import ExternalTask, external_task
from tasks_app.retries import Backoff
from tasks_app.stages import step, step_sync
from tasks_app.steps import anotify_step_completed, notify_step_completed

__all__ = [
    "Backoff",
    "Cancelled",
    "ExternalTask",
    "LeaseLost",
    "Retry",
    "Task",
    "TaskHandle",
    "anotify_step_completed",
    "current_task",
    "external_task",
    "notify_step_completed",
    "step",
    "step_sync",
    "task",
]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def task(func: Callable[P, R], /) -> Task[P, R]: ...


@overload
def task(
    *,
    name: str | None = None,
    queue: str = "default",
    queues: Sequence[str] = (),
    priority: int = 0,
    max_attempts: int | None = None,
    retry_on: type[BaseException] | Sequence[type[BaseException]] = (BaseException,),
    backoff: Backoff | None = None,
    timeout: float | None = None,
    expose: bool = False,
    sensitive: Sequence[str] = (),
) -> Callable[[Callable[P, R]], Task[P, R]]: ...


def task(
    func: Callable[..., Any] | None = None, /, *, name: str | None = None, **options: Any
) -> Any:
    """Declare a task. With `expose=True` it can be submitted over HTTP, within the declared bounds: on `queue` or one
    of `queues`, with at most `priority`, `max_attempts` and `timeout` (seconds per attempt).

    An attempt that raises one of `retry_on` is followed by another, after the delay that `backoff` gives, until
    `max_attempts` have failed; any other error ends the task at once. `raise Retry(after=seconds)`, a time-out and a
    worker that died are always followed by another attempt, within `max_attempts`.

    `sensitive` names parameters whose values the admin shows to nobody. `name` defaults to module and function. Raises InvalidTask.
    """

    def declare(function: Callable[..., Any]) -> Task[..., Any]:
        declared = Task(
            func=function,
            name=name or f"{function.__module__}.{function.__qualname__}",
            **{option: _frozen(value) for option, value in options.items()},
        )
        catalogue.register(declared)
        return declared

    return declare if func is None else declare(func)


def _frozen(value: Any) -> Any:
    """Several queues or exception classes as a tuple, however they were listed; one class alone as well."""
    if isinstance(value, type):
        return (value,)
    return tuple(value) if isinstance(value, list | set) else value
