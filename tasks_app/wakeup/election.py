"""Which process of a fleet is the bridge: whoever holds an advisory lock on its listening connection.

The server gives the lock back when that connection ends, at once when the process dies, and after three idle seconds
when it is frozen or cut off.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from psycopg import AsyncConnection

from tasks_app.events import emit
from tasks_app.store import depose, lead, ping
from tasks_app.store.pool import execute

# A bridge that died is succeeded within a second.
TRY_EVERY_SECONDS = 0.5
# Three beats that did not come back through the layer: others may reach it where we can't.
UNHEARD_SECONDS = 3.0
# Later than the server's own end of an idle session and than a bridge's resignation. It is for a bridge that is frozen
# while its session is busy: the server is waiting for it to take in what it heard.
FROZEN_SECONDS = 4.0
# Two standbys rarely depose one after the other.
_MOST_JITTER_SECONDS = 1.0
# Whoever resigned lets another one go first.
_REST_SECONDS = 1.0


@dataclass(slots=True)
class Vigil:
    """What a standby makes of the bridge that it stands by for. Times are seconds of one monotonic clock."""

    patience_seconds: float = FROZEN_SECONDS
    _bridge: int | None = None
    _since: float = float("-inf")

    def is_frozen(self, bridge: int | None, heard_at: float, now: float) -> bool:
        """Has the server process `bridge` led in silence for too long? `heard_at` is when the last beat was heard."""
        if bridge != self._bridge:
            self._bridge, self._since = bridge, now
        return bridge is not None and now - max(self._since, heard_at) >= self.patience_seconds


def is_unheard(leading_since: float, heard_own_at: float, now: float) -> bool:
    """Has a bridge not heard a beat of its own, through the layer, for too long?"""
    return now - max(leading_since, heard_own_at) >= UNHEARD_SECONDS


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a candidate knows from its own end of the layer."""

    heard_at: Callable[[], float]
    """When the last beat of any bridge was heard."""
    heard_own_at: Callable[[], float]
    """When the last beat was heard that this process sent as the bridge."""
    reaches_layer: Callable[[], bool]
    """A bridge that does not would be of no use."""


class Election:
    """One candidate. The listener's gate: it lets a connection listen once that is the bridge's."""

    def __init__(self, outlook: Outlook, clock: Callable[[], float] = time.monotonic) -> None:
        self._outlook = outlook
        self._clock = clock
        self._since: float | None = None
        self._previous: int | None = None
        self._resigned = False

    @property
    def is_leading(self) -> bool:
        """True from winning to the end of the connection that won."""
        return self._since is not None

    async def admit(self, connection: AsyncConnection, alive: Callable[[], None]) -> None:
        """Return once this connection's session is the bridge. Calls `alive` with each sign of life of the server."""
        if self._previous is not None:
            # Where our last connection is half open, its session would keep the lock until it is found idle.
            await execute(connection, depose(self._previous))
            self._previous = None
        emit("bridge.standby")
        vigil = Vigil(FROZEN_SECONDS + random.uniform(0, _MOST_JITTER_SECONDS))
        while not await self._wins(connection, vigil):
            alive()
            await asyncio.sleep(TRY_EVERY_SECONDS)
        self._since = self._clock()
        emit("bridge.leading", process=self._previous)

    def is_over(self) -> bool:
        """Should the bridge resign? What it publishes does not come back."""
        if self._since is None:
            return False
        now = self._clock()
        self._resigned = is_unheard(self._since, self._outlook.heard_own_at(), now)
        if self._resigned:
            emit("bridge.resigned", led_seconds=now - self._since)
        return self._resigned

    def left(self) -> float:
        """The connection is gone. Gives the seconds to stay away."""
        resigned, self._resigned, self._since = self._resigned, False, None
        return _REST_SECONDS if resigned else 0.0

    async def _wins(self, connection: AsyncConnection, vigil: Vigil) -> bool:
        if not self._outlook.reaches_layer():
            await execute(connection, ping())
            return False
        wins, bridge = await execute(connection, lead())
        if wins:
            self._previous = bridge
        elif vigil.is_frozen(bridge, self._outlook.heard_at(), self._clock()):
            assert bridge is not None
            emit("bridge.deposed", process=bridge)
            await execute(connection, depose(bridge))
        return wins
