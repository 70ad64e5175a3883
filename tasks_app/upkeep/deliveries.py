"""Tells the ends of tasks: into inboxes, and to webhooks, a few at a time of each owner and host."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from tasks_app import conf
from tasks_app.errors import StoreUnavailable
from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import (
    Attempt,
    Due,
    Route,
    due_routes,
    fill_inboxes,
    record_delivery,
    take_deliveries,
)
from tasks_app.store.deliveries import MOST_ROUTES
from tasks_app.store.pool import Pool
from tasks_app.webhooks.patience import pause_after
from tasks_app.webhooks.places import Places
from tasks_app.webhooks.sending import ATTEMPT_SECONDS, Sender

INBOXES = Route()
_BATCH = 500
# Hints may be lost, and then this is how late an end is told.
_EVERY_SECONDS = 5.0
# Where one look does not take in all: an owner with thousands of hosts, all of them due, keeps no database busy.
_NEXT_LOOK_SECONDS = 0.05
# Whoever took a webhook and died has it sent again after this long; longer than an attempt and the recording of it.
_LEASE_SECONDS = 3 * ATTEMPT_SECONDS
# A host that does not answer has an eighth of the places.
_HOST_SHARE = 8
# A process that ends lets attempts come to their end for so long.
_FAREWELL_SECONDS = 1.0


class Deliveries(Loop):
    """One look says who is to be told something now, and when the next is; most looks find nothing."""

    name = "deliveries"

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        most = conf.current().WEBHOOK_CONCURRENCY
        self._pool = pool
        self._sender = Sender()
        self._flights: set[asyncio.Task[None]] = set()
        self._places = Places(most, most_each=max(1, most // _HOST_SHARE))
        self._start = INBOXES

    async def step(self) -> float:
        """Tell what is due. A full batch is followed by the next at once, a full house by whoever makes room."""
        routes = await self._pool.run(due_routes(self._start))
        inboxes = routes.pop(INBOXES, None)
        # The others' turn, where there are more than one look takes in.
        self._start = next(reversed(routes)) if len(routes) == MOST_ROUTES else INBOXES
        longest = _EVERY_SECONDS if self._start == INBOXES else _NEXT_LOOK_SECONDS
        is_behind = inboxes is not None and inboxes <= 0 and await self._fill()
        if conf.current().WEBHOOKS:
            is_behind |= await self._take(self._room(routes))
        ahead = [seconds for seconds in (inboxes, *routes.values()) if seconds and seconds > 0]
        return 0.0 if is_behind else min([longest, *ahead])

    async def stop(self, within: float = 2.0) -> None:
        """End; what is being sent is sent again by somebody else, unless it is over within a second."""
        await super().stop(within)
        if self._flights:
            _, late = await asyncio.wait(self._flights, timeout=_FAREWELL_SECONDS)
            for flight in late:
                flight.cancel()

    async def _fill(self) -> bool:
        looked, entries = await self._pool.run(fill_inboxes(_BATCH))
        if entries:
            emit("inbox.filled", count=entries)
        return looked == _BATCH

    def _room(self, routes: Mapping[Route, float]) -> Counter[Route]:
        """How many to take of which: one of each, in no order that would favour one, then another of each."""
        places = self._places.copy()
        due = [route for route, seconds in routes.items() if seconds <= 0]
        room: Counter[Route] = Counter()
        for _ in range(places.most_each):
            for route in random.sample(due, len(due)):
                if places.is_free(*route):
                    places.take(*route)
                    room[route] += 1
        return room

    async def _take(self, room: Counter[Route]) -> bool:
        """Take so many and send them. True where there may be more of a route that has places left."""
        if not room:
            return False
        taken: Counter[Route] = Counter()
        for due in await self._pool.run(take_deliveries(room, _LEASE_SECONDS)):
            taken[due.route] += 1
            self._places.take(*due.route)
            flight = asyncio.create_task(self._deliver(due), name="asyncpoll:webhook")
            self._flights.add(flight)
            flight.add_done_callback(partial(self._landed, due.route))
        return any(
            count == room[route] and self._places.is_free(*route) for route, count in taken.items()
        )

    def _landed(self, route: Route, flight: asyncio.Task[None]) -> None:
        self._flights.discard(flight)
        self._places.leave(*route)
        self.wake()

    async def _deliver(self, due: Due) -> None:
        settings = conf.current()
        attempt = await self._sender.send(due, settings.WEBHOOK_TEST_HOSTS)
        pause = None
        if attempt.error:
            pause = pause_after(
                attempt, due.attempt, due.owed_seconds, settings.WEBHOOK_RETRY_SECONDS
            )
        # Where it can't be recorded it is sent again, under the same id.
        with suppress(StoreUnavailable):
            await self._pool.run(record_delivery(due, attempt, pause))
        _tell(due, attempt, pause)


def _tell(due: Due, attempt: Attempt, pause: float | None) -> None:
    """Nothing of the address but its host: the rest may be a secret of the receiver's."""
    facts = {
        "id": due.id,
        "host": due.host,
        "attempt": due.attempt,
        "status": attempt.status,
        "duration_ms": attempt.duration_ms,
        "owed_seconds": due.owed_seconds,
    }
    if not attempt.error:
        emit("delivery.sent", **facts)
    elif pause is not None:
        emit("delivery.failed", **facts, error=attempt.error, pause=pause)
    else:
        emit("delivery.abandoned", **facts, error=attempt.error)
