"""Rolls finished tasks up by the hour, so that years of them can be asked about at the cost of a page."""

from __future__ import annotations

import asyncio
from typing import Final

from tasks_app.events import emit
from tasks_app.insights.sketch import GAMMA, SHORTEST_MS
from tasks_app.loops import Loop
from tasks_app.store import fold_day, roll_up
from tasks_app.store.pool import Pool

_EVERY_SECONDS = 60.0
# A task's end carries the time of its statement and is seen when its transaction commits; one that the caller opened
# may last. What commits later than the last look is not counted.
LOOKS: Final = (60.0, 600.0, 7_200.0)
# How far back a first round goes.
MOST_HOURS: Final = 32 * 24
# Charts are of 24 hours. What a plan reads is a month, of which every day by the hour is 24 times the rows.
FOLD_AFTER_DAYS: Final = 1
# Between two hours, so that the history of a month leaves the database to others for most of the time.
_BREATH_SECONDS = 0.1


class Rollups(Loop):
    """A round a minute: hours that are due, then days that are long past, one transaction each."""

    name = "rollups"

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    async def step(self) -> float:
        """One round."""
        while (
            hour := await self._pool.run(roll_up(MOST_HOURS, LOOKS, GAMMA, SHORTEST_MS))
        ) is not None:
            emit("hour.rolled_up", started_at=hour.started_at, count=hour.count)
            await asyncio.sleep(_BREATH_SECONDS)
        while (day := await self._pool.run(fold_day(FOLD_AFTER_DAYS, MOST_HOURS))) is not None:
            emit("day.folded", started_at=day.started_at, count=day.count)
            await asyncio.sleep(_BREATH_SECONDS)
        return _EVERY_SECONDS
