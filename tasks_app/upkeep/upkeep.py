"""All of upkeep, as one thing to start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tasks_app.store.pool import Pool, loop_pool
from tasks_app.upkeep.deliveries import Deliveries
from tasks_app.upkeep.orders import Orders
from tasks_app.upkeep.promotion import Promotion
from tasks_app.upkeep.pruning import Pruning
from tasks_app.upkeep.rescue import Rescue
from tasks_app.upkeep.rollups import Rollups
from tasks_app.upkeep.schedules import Schedules
from tasks_app.wakeup import due, owed


class Upkeep:
    """The loops that look after the table, on `pool`."""

    def __init__(self, pool: Pool) -> None:
        self._promotion = Promotion(pool)
        self._deliveries = Deliveries(pool)
        self._deafen: list[Callable[[], None]] = []
        self._loops = (
            Rescue(pool),
            self._promotion,
            Schedules(pool),
            Pruning(pool),
            Rollups(pool),
            Orders(pool),
            self._deliveries,
        )

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._deafen = [
            due.subscribe(self._promotion.due_in),
            owed.subscribe(self._deliveries.wake),
        ]
        for loop in self._loops:
            loop.start()

    async def stop(self) -> None:
        """End; a statement on its way is cancelled and changes nothing."""
        for end in self._deafen:
            end()
        await asyncio.gather(*(loop.stop() for loop in self._loops))

    def due_in(self, seconds: float) -> None:
        """A task was scheduled from this process and will be due then."""
        self._promotion.due_in(seconds)


_running: dict[asyncio.AbstractEventLoop, Upkeep] = {}


async def start_upkeep() -> None:
    """Look after the table from the running event loop, on its own pool. A second call does nothing."""
    pool = await loop_pool()
    loop = asyncio.get_running_loop()
    if loop not in _running:
        upkeep = _running[loop] = Upkeep(pool)
        upkeep.start()


async def stop_upkeep() -> None:
    """End what `start_upkeep` began."""
    upkeep = _running.pop(asyncio.get_running_loop(), None)
    if upkeep is not None:
        await upkeep.stop()
