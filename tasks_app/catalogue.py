"""The tasks that this process knows, by name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from django.utils.module_loading import autodiscover_modules

from tasks_app import conf, queues
from tasks_app.declaration import Task, default_backoff
from tasks_app.errors import InvalidTask, UnknownTask
from tasks_app.retries import RetryPolicy

_tasks: dict[str, Task[Any, Any]] = {}


def register(task: Task[Any, Any]) -> None:
    """Add a declared task. Raises InvalidTask when another function has its name, or its queue is not for it."""
    known = _tasks.get(task.name)
    if known is not None and known.path != task.path:
        raise InvalidTask(
            f"Task {task.name!r} is declared by {known.path} and by {task.path}; give one of them another name=."
        )
    _check_queues(task)
    _tasks[task.name] = task


def _check_queues(task: Task[Any, Any]) -> None:
    """Workers of ours leave an external queue alone, so that a task for them would wait there for ever."""
    if task.is_external:
        ours = (other for other in _tasks.values() if not other.is_external)
        clashes = [other.name for other in ours if task.queue in (other.queue, *other.queues)]
        if clashes:
            raise InvalidTask(
                f"Task {task.name!r}: queue {task.queue!r} is also the queue of {clashes[0]!r}, which runs here; an "
                "external task needs a queue that no task with a function has."
            )
        return
    for queue in (task.queue, *task.queues):
        reserved_by = queues.reserved_by(queue)
        if reserved_by is not None:
            raise InvalidTask(
                f"Task {task.name!r}: queue {queue!r} is run outside this code base, by {reserved_by}; name another."
            )


def find(name: str) -> Task[Any, Any]:
    """The task of that name. Raises UnknownTask."""
    try:
        return _tasks[name]
    except KeyError:
        raise UnknownTask(
            f"No task is called {name!r} here; declare it with @task in a module named 'tasks' of an installed app, or "
            "list its module in ASYNCPOLL['TASK_MODULES']."
        ) from None


def exposed(name: str) -> Task[Any, Any] | None:
    """The task of that name, if it may be submitted over HTTP. One that may not can't be told from one that is not there."""
    try:
        declared = find(name)
    except UnknownTask:
        return None
    return declared if declared.expose else None


def retry_policy(name: str) -> RetryPolicy:
    """What is done about a failed attempt at that task; the project's default where nobody here knows it."""
    task = _tasks.get(name)
    return RetryPolicy(default_backoff()) if task is None else task.retry_policy


def known() -> Iterator[Task[Any, Any]]:
    """Every declared task, by name."""
    return iter(sorted(_tasks.values(), key=lambda task: task.name))


def discover() -> None:
    """Import every module that may declare tasks."""
    autodiscover_modules("tasks")
    for module in conf.current().TASK_MODULES:
        import_module(module)
