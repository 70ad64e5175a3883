"""What the database is asked for the sake of metrics: rarely, one answer for all that ask meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from tasks_app.errors import StoreUnavailable
from tasks_app.observers.metrics import WAITS
from tasks_app.store import QueueDepth, clock, depths, hasten
from tasks_app.store.pool import loop_pool

# However many scrape, and however often.
FRESH_SECONDS = 5.0
# A scrape has its own time limit, and the other figures are worth having without these.
_PATIENCE_SECONDS = 1.0
# A database that is that slow has better things to do.
_MOST_MILLISECONDS = 2_000

Depths = Sequence[QueueDepth]


class Measuring:
    """Keeps the last look at the queues."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began_at = float("-inf")
        self._look: asyncio.Task[Depths | None] | None = None

    async def depths(self) -> Depths | None:
        """The queues as of a few seconds ago at most; None if the database does not say."""
        look = self._current() or self._begin()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                # Who scraped may hang up: a query cancelled half-way costs the pool its connection.
                return await asyncio.shield(look)
        except TimeoutError:
            return None

    def _current(self) -> asyncio.Task[Depths | None] | None:
        look = self._look
        if look is None or look.get_loop() is not asyncio.get_running_loop():
            return None
        is_fresh = self._now() - self._began_at < FRESH_SECONDS
        return look if is_fresh or not look.done() else None

    def _begin(self) -> asyncio.Task[Depths | None]:
        self._began_at = self._now()
        self._look = asyncio.create_task(_measure(), name="asyncpoll:measure")
        return self._look


async def _measure() -> Depths | None:
    try:
        pool = await loop_pool()
        async with pool.transaction() as transaction:
            await transaction.run(hasten(_MOST_MILLISECONDS))
            found = await transaction.run(depths())
        sent_at = time.time()
        theirs = await pool.run(clock())
    except StoreUnavailable:
        return None
    # The answer was made at some moment in between.
    WAITS.ahead_seconds = theirs - (sent_at + time.time()) / 2
    return found


measuring = Measuring()
