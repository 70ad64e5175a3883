"""The plans of a process: read once a minute at most for each type of task, and answered from memory."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import Final

from asyncpoll.planfile import TaskPlan
from tasks_app import conf
from tasks_app.events import emit
from tasks_app.insights.durations import Durations
from tasks_app.insights.plan import make_plan
from tasks_app.plans.registry import Asked, Measurement, combined
from tasks_app.store.pool import loop_pool

KEPT_SECONDS: Final = 60.0
_MOST_TYPES = 1_000


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, what it was measured by (None: nothing was), and when that was read, by time.monotonic()."""

    plan: TaskPlan
    measured: Measurement | None
    read_at: float


class PlanBook:
    """Plans by task type; the type that nobody has asked for longest is forgotten first."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, Planned] = OrderedDict()
        self._turning: dict[str, asyncio.Task[Planned]] = {}

    def known(self, task: str) -> TaskPlan | None:
        """The plan, from memory alone; one that is missing or old is read in the background, for the next to ask."""
        page = self._pages.get(task)
        if page is None or time.monotonic() - page.read_at > KEPT_SECONDS:
            self._turn(task)
        return None if page is None else page.plan

    async def plan(self, task: str) -> Planned:
        """The plan as the registry has it now; who asks while it is read is told the same. Raises StoreUnavailable."""
        return await asyncio.shield(self._turn(task))

    def _turn(self, task: str) -> asyncio.Task[Planned]:
        turning = self._turning.get(task)
        # One whose event loop has ended is never taken out.
        if turning is None or turning.get_loop().is_closed():
            turning = self._turning[task] = asyncio.ensure_future(self._read(task))
            turning.add_done_callback(partial(self._turned, task))
        return turning

    def _turned(self, task: str, turning: asyncio.Task[Planned]) -> None:
        if self._turning.get(task) is turning:
            del self._turning[task]
        if turning.cancelled():
            return
        if (error := turning.exception()) is not None:
            emit("plan.unread", task=task, error=error)
            return
        self._pages[task] = turning.result()
        self._pages.move_to_end(task)
        if len(self._pages) > _MOST_TYPES:
            self._pages.popitem(last=False)

    async def _read(self, task: str) -> Planned:
        pool = await loop_pool()
        of_newest, of_ran, of_waited = Asked(task=task).calls()
        newest, ran, waited = (
            await pool.run(of_newest),
            await pool.run(of_ran),
            await pool.run(of_waited),
        )
        measured = combined(newest, ran, waited).get(task)
        if measured is None:
            return unmeasured(task)
        plan = make_plan(task, measured.ran, conf.current().MAX_HOLD_SECONDS)
        return Planned(plan, measured, time.monotonic())


def unmeasured(task: str) -> Planned:
    """What is said of a type of which nothing was measured."""
    plan = make_plan(task, Durations(), conf.current().MAX_HOLD_SECONDS)
    return Planned(plan, None, time.monotonic())


book: Final = PlanBook()
