"""Who waits for work on which queue: a hint wakes one of them, who looks for itself and passes the offer on."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from tasks_app.wakeup.topic import Wake

# A look takes a connection of the pool, and the others are for those who wait for a task's next version.
_LOOKS_AT_ONCE = 2


class Claimant:
    """One held claim. It is idle while it waits to be `woken`, and looks for work between two waits."""

    __slots__ = ("_future", "_lane", "_over", "first", "queue")

    def __init__(self, queue: str, lane: _Lane) -> None:
        self.queue = queue
        self.first = False
        self._lane = lane
        self._over: Wake | None = None
        self._future: asyncio.Future[Wake] | None = None

    @property
    def is_offered(self) -> bool:
        """True from an offer until `woken` gives it."""
        future = self._future
        if future is None or not future.done() or future.cancelled():
            return False
        return future.result() is Wake.OFFER

    def wake(self, why: Wake) -> None:
        """End the wait; the first reason counts."""
        self._lane.idle.pop(self, None)
        if self._future is not None and not self._future.done():
            self._future.set_result(why)

    def end(self, why: Wake) -> None:
        """End this wait and every later one."""
        self._over = why
        self.wake(why)

    async def woken(self, within: float) -> Wake:
        """Wait for an offer, at most `within` seconds: then TIMEOUT. Whoever had one before stands first in line."""
        if self._over is not None:
            return self._over
        if self._lane.take():
            self.first = True
            return Wake.OFFER
        loop = asyncio.get_running_loop()
        self._future = loop.create_future()
        self._lane.stand(self)
        timer = loop.call_later(within, self.wake, Wake.TIMEOUT)
        try:
            why = await self._future
        finally:
            timer.cancel()
        self._future = None
        self.first = why is Wake.OFFER
        return why


class _Lane:
    """The claims held for one queue. `idle` are those that wait, in order."""

    __slots__ = ("_pending", "idle", "members")

    def __init__(self) -> None:
        self.members: set[Claimant] = set()
        self.idle: OrderedDict[Claimant, None] = OrderedDict()
        self._pending = False

    def stand(self, claimant: Claimant) -> None:
        self.idle[claimant] = None
        if claimant.first:
            self.idle.move_to_end(claimant, last=False)

    def offer(self) -> None:
        """Wake the one that has waited longest. While all are looking, the next that would wait looks once more."""
        if self.idle:
            next(iter(self.idle)).wake(Wake.OFFER)
        else:
            self._pending = True

    def take(self) -> bool:
        pending, self._pending = self._pending, False
        return pending


class Offers:
    """The held claims of one process, by queue. `looking` is held by whoever looks for work."""

    def __init__(self) -> None:
        self.looking = asyncio.Semaphore(_LOOKS_AT_ONCE)
        self._lanes: dict[str, _Lane] = {}

    @property
    def waiting(self) -> int:
        """How many claims are held."""
        return sum(len(lane.members) for lane in self._lanes.values())

    def join(self, queue: str) -> Claimant:
        """Register for `queue`, before looking for work: no offer is missed from now on. Leave with `leave`, always."""
        lane = self._lanes.get(queue)
        if lane is None:
            lane = self._lanes[queue] = _Lane()
        claimant = Claimant(queue, lane)
        lane.members.add(claimant)
        return claimant

    def leave(self, claimant: Claimant) -> None:
        """Forget a claimant. An offer that it did not come to use goes to the next."""
        lane = self._lanes[claimant.queue]
        lane.members.discard(claimant)
        lane.idle.pop(claimant, None)
        if not lane.members:
            del self._lanes[claimant.queue]
        elif claimant.is_offered:
            lane.offer()

    def offer(self, queue: str) -> None:
        """There may be work on `queue`."""
        lane = self._lanes.get(queue)
        if lane is not None:
            lane.offer()

    def offer_all(self) -> None:
        """There may be work anywhere: hints can be lost."""
        for lane in tuple(self._lanes.values()):
            lane.offer()

    def end_all(self, why: Wake) -> None:
        """End every wait, for good."""
        for lane in tuple(self._lanes.values()):
            for claimant in tuple(lane.members):
                claimant.end(why)
