"""Ticks the schedules that this process declares."""

from __future__ import annotations

import time
from datetime import datetime

from tasks_app import conf
from tasks_app.cron import next_tick
from tasks_app.errors import InvalidSchedule
from tasks_app.events import emit
from tasks_app.limits import new_task_id
from tasks_app.loops import Loop
from tasks_app.schedules import declared
from tasks_app.store import (
    DeclaredSchedule,
    NextTick,
    Tick,
    declare_schedules,
    keep_schedules,
    read_schedules,
    tick,
)
from tasks_app.store.pool import Pool

# How often a process says what it declares, and after how long a schedule that nobody spoke for was removed from the
# code. A process tells so only once it has lived as long: when a fleet starts, the others may be slower than it.
_KEEP_SECONDS = 60.0
_LAPSE_SECONDS = 300.0
_NEVER_SECONDS = 1e9


class Schedules(Loop):
    """Says what is declared here, then sleeps from tick to tick, at most a poll: another process may declare anew.

    The row is the truth about cron and time zone: of two releases that run at once, the one started last wins.
    """

    name = "schedules"

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool
        self._started_at = time.monotonic()
        self._said: list[DeclaredSchedule] | None = None
        self._keep_at = 0.0

    async def step(self) -> float:
        """Tick what is due. A tick that was somebody else's, or that the lock kept from us, is looked at again."""
        here = declared()
        if here != self._said:
            await self._declare(here)
        elif time.monotonic() >= self._keep_at:
            await self._keep(here)
        period = conf.current().WORKER_POLL_SECONDS
        if not here:
            return period
        now, found = await self._pool.run(read_schedules([each.name for each in here]))
        passed = [_passed(each, now) for each in found if each.at <= now]
        ticks = [each for each in passed if each is not None]
        if ticks:
            await self._tick(ticks, now)
        ahead = [each.at for each in found if each.at > now] + [each.next_at for each in ticks]
        return min([period, *((at - now).total_seconds() for at in ahead)])

    async def _declare(self, here: list[DeclaredSchedule]) -> None:
        if here:
            now, _ = await self._pool.run(read_schedules([]))
            starts = [(each, next_tick(each.cron, each.timezone, now)) for each in here]
            await self._pool.run(declare_schedules(starts))
            emit("schedules.declared", names=[each.name for each in here])
        self._said = here
        self._keep_at = time.monotonic() + _KEEP_SECONDS

    async def _keep(self, here: list[DeclaredSchedule]) -> None:
        is_settled = time.monotonic() - self._started_at > _LAPSE_SECONDS
        lapse = _LAPSE_SECONDS if is_settled else _NEVER_SECONDS
        names = [each.name for each in here]
        kept, lapsed = await self._pool.run(keep_schedules(names, _KEEP_SECONDS / 2, lapse))
        if lapsed:
            emit("schedules.lapsed", names=lapsed)
        if kept != set(names):
            # Others took us for gone: our word was late, or somebody deleted the row.
            await self._declare(here)
        self._keep_at = time.monotonic() + _KEEP_SECONDS

    async def _tick(self, ticks: list[Tick], now: datetime) -> None:
        for ticked in await self._pool.run(tick(ticks)):
            late = (now - ticked.at).total_seconds()
            emit("schedule.ticked", name=ticked.name, id=ticked.task_id, late_seconds=late)


def _passed(due: NextTick, now: datetime) -> Tick | None:
    """One tick, however many have passed. None: another release declared what this one does not understand."""
    try:
        next_at = next_tick(due.cron, due.timezone, now)
    except InvalidSchedule as error:
        emit("schedule.strange", name=due.name, error=error)
        return None
    return Tick(due.name, due.at, next_at, new_task_id())
