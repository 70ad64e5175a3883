"""The tasks that this process knows, by name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from django.utils.module_loading import autodiscover_modules

from tasks_app import conf
from tasks_app.declaration import Task
from tasks_app.errors import InvalidTask, UnknownTask

_tasks: dict[str, Task[Any, Any]] = {}


def register(task: Task[Any, Any]) -> None:
    """Add a declared task. Raises InvalidTask when another function has its name."""
    known = _tasks.get(task.name)
    if known is not None and known.path != task.path:
        raise InvalidTask(
            f"Task {task.name!r} is declared by {known.path} and by {task.path}; give one of them another name=."
        )
    _tasks[task.name] = task


def find(name: str) -> Task[Any, Any]:
    """The task of that name. Raises UnknownTask."""
    try:
        return _tasks[name]
    except KeyError:
        raise UnknownTask(
            f"No task is called {name!r} here; declare it with @task in a module named 'tasks' of an installed app, or "
            "list its module in ASYNCPOLL['TASK_MODULES']."
        ) from None


def known() -> Iterator[Task[Any, Any]]:
    """Every declared task, by name."""
    return iter(sorted(_tasks.values(), key=lambda task: task.name))


def discover() -> None:
    """Import every module that may declare tasks."""
    autodiscover_modules("tasks")
    for module in conf.current().TASK_MODULES:
        import_module(module)
