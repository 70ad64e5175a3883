"""Tasks that tests of faults enqueue, with the results they are to have, and looks at how far they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tasks_app.tasks import Task
from tests.acceptance.workers import Queue
from tests.fault_tasks import EFFECTS
from tests.support import eventually

SETTINGS = {"DJANGO_SETTINGS_MODULE": "tests.fault_settings"}
# Hundreds of tasks, on a machine that may have other things to do.
_PATIENCE_SECONDS = 60.0


class Squares:
    """The tasks of a queue whose results are squares. Makes the table of their side effects."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.results: dict[UUID, int] = {}
        queue.execute(EFFECTS)

    def enqueue(self, task: Task[..., Any], count: int = 1, *args: Any) -> Sequence[UUID]:
        """`count` tasks, each with a number of its own and with `args`."""
        numbers = range(len(self.results), len(self.results) + count)
        ids = self.queue.enqueue_all(task, [(number, *args) for number in numbers])
        self.results.update(
            (task_id, number * number) for task_id, number in zip(ids, numbers, strict=True)
        )
        return ids

    def until_begun(self, count: int) -> None:
        """Wait for so many attempts to leave their side effect."""
        eventually(lambda: self.begun() >= count, _PATIENCE_SECONDS)

    def until_done(self, count: int) -> None:
        """Wait for so many to succeed."""
        eventually(lambda: self.done() >= count, _PATIENCE_SECONDS)

    def begun(self) -> int:
        """How many attempts have left their side effect."""
        return self._count("FROM effect")

    def done(self) -> int:
        """How many have succeeded."""
        return self._count("FROM tasks_app_task WHERE status = 'SUCCESS'")

    def _count(self, what: str) -> int:
        ((count,),) = self.queue.ask(f"SELECT count(*) {what}")
        return count
