"""Turns what the listener hears into group messages for the hubs: one in flight, gathering meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from psycopg import AsyncConnection

from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import identify, new_epoch
from tasks_app.store.pool import execute
from tasks_app.wakeup import due, owed
from tasks_app.wakeup.message import ANYWHERE, Message, group_of

CHANGED_CHANNEL = "asyncpoll_changed"
WORK_CHANNEL = "asyncpoll_work"
# A loop that is only ever woken still looks around once in a while.
_IDLE_SECONDS = 60.0
# More characters than this waiting for a layer that is stuck are dropped; the gap makes every hub re-read.
_LARGEST_BACKLOG = 2_000_000
_MOST_QUEUES = 10_000
# Longer than the layer's own time limits, for layers that have none.
_PUBLISH_SECONDS = 2.0
# What a hub takes in at once, about six thousand hints in ten milliseconds; the rest follows in the next message.
_LARGEST_MESSAGE = 256_000


class Bridge(Loop):
    """The listener's ear. Every publication has an epoch and a sequence number; one that fails leaves a gap."""

    name = "bridge"
    # The first publication after an outage is what ends it for the hubs.
    longest_pause_seconds = 1.0

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self._layer = layer
        self._group = ""
        self._epoch: int | None = None
        self._sequence = 0
        self._heard: deque[str] = deque()
        self._backlog = 0
        self._offered: set[str] = set()
        self._beat = False

    @property
    def epoch(self) -> int | None:
        """The epoch of what it publishes, None before the first."""
        return self._epoch

    async def connected(self, connection: AsyncConnection) -> None:
        """Begin a new epoch: what happened before this connection may have gone unheard."""
        self._group = group_of(await execute(connection, identify()))
        self._epoch = await execute(connection, new_epoch())
        self._sequence = 0
        self._beat = False
        emit("bridge.epoch", epoch=self._epoch)

    def heard(self, channel: str, payload: str) -> None:
        """Pass a hint on."""
        if channel == WORK_CHANNEL:
            self._heard_of_work(payload)
            return
        if self._backlog >= _LARGEST_BACKLOG:
            emit("bridge.overrun", dropped=len(self._heard))
            self._heard.clear()
            self._backlog = 0
            self._sequence += 1
        self._heard.append(payload)
        self._backlog += len(payload) + 1
        self.wake()

    def _heard_of_work(self, payload: str) -> None:
        verb, _, rest = payload.partition(":")
        # Dropped beyond its bound: held claims look for themselves once a second.
        if verb in ("queue", "room") and len(self._offered) < _MOST_QUEUES:
            self._offered.add(rest if verb == "queue" else ANYWHERE)
            self.wake()
        elif verb == "due":
            due.heard(rest)
        elif verb == "deliver":
            owed.tell()

    def beat(self) -> None:
        """Certify everything heard so far."""
        self._beat = True
        self.wake()

    def lost(self) -> None:
        """Stop certifying; what was heard is still passed on."""
        self._beat = False

    async def step(self) -> float:
        """Publish what gathered. Raises what the layer raises; the number is used up all the same."""
        if self._epoch is None or not self._has_news:
            return _IDLE_SECONDS
        self._sequence += 1
        hints = self._take()
        # A beat certifies all that was heard before it, so it goes with the last of it.
        beat, self._beat = self._beat and not self._heard, self._beat and bool(self._heard)
        message = Message(self._epoch, self._sequence, beat, hints, tuple(sorted(self._offered)))
        self._offered = set()
        async with asyncio.timeout(_PUBLISH_SECONDS):
            await self._layer.group_send(self._group, message.pack())
        return 0.0 if self._has_news else _IDLE_SECONDS

    def _take(self) -> str:
        """The hints of one message."""
        taken: list[str] = []
        characters = 0
        while self._heard and characters < _LARGEST_MESSAGE:
            taken.append(self._heard.popleft())
            characters += len(taken[-1]) + 1
        self._backlog -= characters
        return ",".join(taken)

    @property
    def _has_news(self) -> bool:
        return bool(self._heard or self._offered or self._beat)
