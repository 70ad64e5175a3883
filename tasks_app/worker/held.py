"""What this process holds: attempts from their claim until their outcome is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import UUID

from tasks_app.worker.attempt import Attempt

# Outcomes that wait for the committer keep their place beside the running ones, so that claiming, running and
# committing overlap, and a database that takes no commits stops the claims.
_PLACES_PER_SLOT = 2


class Held:
    """Counts slots: an attempt takes one while it runs, and a place until its outcome is committed."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self.running = 0
        self.on_room: Callable[[], None] = lambda: None
        self.idle = asyncio.Event()
        self.idle.set()
        self._attempts: dict[UUID, Attempt] = {}

    @property
    def free(self) -> int:
        """How many more attempts may begin."""
        places = self.concurrency * _PLACES_PER_SLOT - len(self._attempts)
        return max(0, min(self.concurrency - self.running, places))

    def all(self) -> tuple[Attempt, ...]:
        """Every attempt held, from any thread: one C call that no other thread gets between."""
        return tuple(self._attempts.values())

    def find(self, task_id: UUID) -> Attempt | None:
        """The attempt held of that task."""
        return self._attempts.get(task_id)

    def add(self, attempt: Attempt) -> None:
        """It begins to run."""
        self._attempts[attempt.id] = attempt
        self.running += 1
        self.idle.clear()

    def finish(self, attempt: Attempt) -> None:
        """It no longer runs; its outcome may still wait."""
        self.running -= 1
        if not self.running:
            self.idle.set()
        self.on_room()

    def drop(self, attempt: Attempt) -> None:
        """Nothing of it is left to do."""
        if self._attempts.get(attempt.id) is attempt:
            del self._attempts[attempt.id]
            self.on_room()
