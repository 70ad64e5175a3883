"""All of upkeep, as one thing to start and stop."""

from __future__ import annotations

from tasks_app.store.pool import Pool
from tasks_app.upkeep.promotion import Promotion
from tasks_app.upkeep.rescue import Rescue


class Upkeep:
    """The loops that look after the table, on `pool`."""

    def __init__(self, pool: Pool) -> None:
        self._promotion = Promotion(pool)
        self._loops = (Rescue(pool), self._promotion)

    def start(self) -> None:
        """Begin, on the running event loop."""
        for loop in self._loops:
            loop.start()

    async def stop(self) -> None:
        """End; a statement on its way is cancelled and changes nothing."""
        for loop in self._loops:
            await loop.stop()

    def due_in(self, seconds: float) -> None:
        """A task was scheduled from this process and will be due then."""
        self._promotion.due_in(seconds)
