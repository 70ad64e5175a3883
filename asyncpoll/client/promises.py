"""Of which tasks the server has accepted to put the end into the message centre."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from asyncpoll.client.answer import canonical
from asyncpoll.client.errors import PollLifetimeExceeded

_REMEMBERED: Final = 10_000


class Promises:
    """The latest of them."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, None] = OrderedDict()

    def accepted(self, task_id: object, told: Mapping[str, Any]) -> None:
        """The server has said yes. Only an inbox is a message centre; a webhook is for programs."""
        if told.get("inbox"):
            self._tasks[canonical(task_id)] = None
            while len(self._tasks) > _REMEMBERED:
                self._tasks.popitem(last=False)

    def mark(self, error: PollLifetimeExceeded) -> PollLifetimeExceeded:
        """Let an error promise what is true for all its tasks."""
        error.notified = all(task_id in self._tasks for task_id in error.unfinished)
        return error
