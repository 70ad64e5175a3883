"""What a worker calls for a task that it has claimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tasks_app import catalogue
from tasks_app.store import Change, Claimed, Committed

Ended = Callable[[Change, Committed, str], None]


@dataclass(frozen=True, slots=True)
class Runnable:
    """A function, and what is called around it in threads of the worker's: `began` before a coroutine function, `ended`
    once the end of the task is committed, with what was asked of the store, what became of it, and why that differs."""

    func: Callable[..., Any]
    is_async: bool
    began: Callable[[], None] | None = None
    ended: Ended | None = None


def find(claimed: Claimed) -> Runnable:
    """The function that was enqueued. Raises UnknownTask."""
    if claimed.adopted is None:
        declared = catalogue.find(claimed.name)
        return Runnable(declared.func, declared.is_async)
    # Not above: Django 5.2 has no Tasks framework of its own, and a project may do without.
    from tasks_app.worker import adopted

    return adopted.find(claimed)
