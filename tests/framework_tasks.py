"""Tasks as users of Django's Tasks framework declare them: nothing here knows of asyncpoll, except where it says so."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from typing import Any

import django

from tasks_app.context import current_task

if django.VERSION >= (6, 0):
    from django.tasks import TaskContext, task
else:
    from django_tasks import TaskContext, task

gates: defaultdict[str, threading.Event] = defaultdict(threading.Event)


class Refused(Exception):
    """An error of the project's own."""

    class ForNow(Exception):
        """One whose class has a qualified name of its own."""


@task
def echo(*args: Any, **kwargs: Any) -> list[Any]:
    """Gives back what it got."""
    return [list(args), kwargs]


@task()
async def aecho(*args: Any, **kwargs: Any) -> list[Any]:
    """The same from a coroutine."""
    return [list(args), kwargs]


@task
def nothing() -> None:
    """Returns nothing."""


@task
def fail(message: str = "broken") -> None:
    """Raises."""
    raise ValueError(message)


@task
async def afail(message: str = "broken") -> None:
    """Raises from a coroutine."""
    raise Refused.ForNow(message)


@task
def leave(kind: str) -> None:
    """Raises what would end a process."""
    raise {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt}[kind]("leaves")


@task
def unfit(kind: str) -> Any:
    """Returns what is not JSON, or can't be stored."""
    return {"function": lambda: True, "nan": float("nan"), "bytes": b"\xff", "nul": "\x00"}[kind]


@task
def tidy() -> Any:
    """Returns what becomes JSON."""
    return {"tuple": (1, 2), "bytes": b"text"}


@task(takes_context=True)
def who_am_i(context: TaskContext, attempt: int) -> list[Any]:
    """What the context says."""
    assert isinstance(context, TaskContext)
    assert context.attempt == attempt
    result = context.task_result
    return [result.id, str(result.status), result.args, len(result.worker_ids)]


@task(takes_context=True)
async def awho_am_i(context: TaskContext) -> str:
    """The same from a coroutine."""
    return context.task_result.id


@task
def fail_until(attempt: int) -> int:
    """Succeeds at an attempt; this one knows of asyncpoll."""
    if current_task().attempt < attempt:
        raise Refused(f"attempt {current_task().attempt}")
    return attempt


@task
def report(gate: str) -> str:
    """Reports and waits; this one knows of asyncpoll."""
    current_task().report(0.5, "half")
    gates[gate].wait(30)
    return "reported"


@task
def wait_at(gate: str) -> bool:
    """Waits at a gate."""
    return gates[gate].wait(30)


@task
async def sleep(seconds: float) -> None:
    """Works for so long."""
    await asyncio.sleep(seconds)


@task
def enqueue_another() -> str:
    """Enqueues a task from a task."""
    return nothing.enqueue().id


class Nested:
    """Not at module level."""

    @staticmethod
    def function() -> None:
        """A function that no worker finds by its name."""


not_a_task = "text"
