"""Lets tasks into the ready index when they become due."""

from __future__ import annotations

import math
import time

from tasks_app import conf
from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import promote
from tasks_app.store.pool import Pool

_BATCH = 500


class Promotion(Loop):
    """Sleeps until the next task is due, at most the poll interval: word of another one may have got lost."""

    name = "promotion"

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool
        self._next_at = 0.0

    def due_in(self, seconds: float) -> None:
        """A task was stored that is due then: be there in time."""
        if time.monotonic() + seconds < self._next_at:
            self.wake()

    async def step(self) -> float:
        """Promote once; a full batch is followed by the next at once."""
        # Whoever is due while this is on its way may be too new for it.
        self._next_at = math.inf
        count, next_due = await self._pool.run(promote(_BATCH))
        if count:
            emit("task.promoted", count=count)
        pause = conf.current().WORKER_POLL_SECONDS
        if count == _BATCH:
            pause = 0.0
        elif next_due is not None:
            pause = max(0.0, min(pause, next_due))
        self._next_at = time.monotonic() + pause
        return pause
