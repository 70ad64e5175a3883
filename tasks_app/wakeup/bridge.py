"""Turns what the listener hears into group messages for the hubs: one in flight, gathering meanwhile."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import new_epoch
from tasks_app.store.pool import execute
from tasks_app.wakeup.message import GROUP, Message

CHANGED_CHANNEL = "asyncpoll_changed"
# A loop that is only ever woken still looks around once in a while.
_IDLE_SECONDS = 60.0
# More than this waiting for a layer that is stuck is dropped; the gap it leaves makes every hub re-read.
_LARGEST_BACKLOG = 10_000


class Bridge(Loop):
    """The listener's ear. Every publication has an epoch and a sequence number; one that fails leaves a gap."""

    name = "bridge"

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self._layer = layer
        self._epoch: int | None = None
        self._sequence = 0
        self._heard: list[str] = []
        self._beat = False

    async def connected(self, connection: AsyncConnection) -> None:
        """Begin a new epoch: what happened before this connection may have gone unheard."""
        self._epoch = await execute(connection, new_epoch())
        self._sequence = 0
        self._beat = False
        emit("bridge.epoch", epoch=self._epoch)

    def heard(self, channel: str, payload: str) -> None:
        """Pass a hint on."""
        if len(self._heard) >= _LARGEST_BACKLOG:
            emit("bridge.overrun", dropped=len(self._heard))
            self._heard.clear()
            self._sequence += 1
        self._heard.append(payload)
        self.wake()

    def beat(self) -> None:
        """Certify everything heard so far."""
        self._beat = True
        self.wake()

    def lost(self) -> None:
        """Stop certifying; what was heard is still passed on."""
        self._beat = False

    async def step(self) -> float:
        """Publish what gathered. Raises what the layer raises; the number is used up all the same."""
        if self._epoch is None or not (self._heard or self._beat):
            return _IDLE_SECONDS
        self._sequence += 1
        message = Message(self._epoch, self._sequence, self._beat, ",".join(self._heard))
        self._heard, self._beat = [], False
        await self._layer.group_send(GROUP, message.pack())
        return 0.0 if self._heard or self._beat else _IDLE_SECONDS
