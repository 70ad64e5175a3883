"""The hub's end of the channel layer: joins the group, receives, and rebuilds after silence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from tasks_app.errors import StoreUnavailable
from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.wakeup.hub import Hub
from tasks_app.wakeup.message import group_of, unpack

_TICK_SECONDS = 0.25
# Layers expire or forget members; joining again is harmless.
_RENEW_SECONDS = 30.0
# A rebuild that changed nothing is not repeated before the bridge had time to be heard.
_REBUILD_EVERY_SECONDS = 3.0
# No call into the layer is waited for longer; also a cancelled receive() may talk to a server that does not answer.
_LAYER_SECONDS = 1.5


class Link(Loop):
    """Receives for one hub. `identify` names the database whose wake-ups it wants."""

    name = "link"
    # A layer that is back is joined within a second.
    longest_pause_seconds = 1.0

    def __init__(
        self,
        layer: Any,
        hub: Hub,
        identify: Callable[[], Awaitable[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._layer = layer
        self._hub = hub
        self._identify = identify
        self._clock = clock
        self._group = ""
        self._channel = ""
        self._is_fresh = True
        self._receiving: asyncio.Task[None] | None = None
        self._renewed_at = self._rebuilt_at = float("-inf")

    @property
    def is_joined(self) -> bool:
        """True while the layer does what it is asked for; a server that stopped answering shows after silence."""
        return self._receiving is not None and not self._receiving.done() and not self.is_failing

    async def stop(self, within: float = 2.0) -> None:
        """Stop receiving and leave the group."""
        await super().stop(within)
        await self._end_receiving()
        if self._channel:
            with suppress(Exception):
                await asyncio.wait_for(
                    self._layer.group_discard(self._group, self._channel), _LAYER_SECONDS
                )

    async def step(self) -> float:
        """Do what is due; returns the time to the next look. Raises what the layer raises."""
        now = self._clock()
        if self._needs_building(now):
            self._rebuilt_at = self._renewed_at = now
            await self._rebuild()
        elif now - self._renewed_at >= _RENEW_SECONDS:
            self._renewed_at = now
            await asyncio.wait_for(
                self._layer.group_add(self._group, self._channel), _LAYER_SECONDS
            )
        return _TICK_SECONDS

    def _needs_building(self, now: float) -> bool:
        if self._receiving is None or self._receiving.done():
            return True
        return self._hub.trust.is_silent(now) and now - self._rebuilt_at >= _REBUILD_EVERY_SECONDS

    async def _rebuild(self) -> None:
        """The same instance with a new channel: another instance each time would leak its connections."""
        await self._choose_group()
        if self._receiving is not None:
            emit("hub.rebuilt", silence_seconds=self._clock() - self._hub.trust.heard_at)
        await self._end_receiving()
        if not self._is_fresh:
            with suppress(Exception):
                await asyncio.wait_for(_empty(self._layer), _LAYER_SECONDS)
        self._is_fresh = False
        self._channel = await asyncio.wait_for(self._layer.new_channel(), _LAYER_SECONDS)
        await asyncio.wait_for(self._layer.group_add(self._group, self._channel), _LAYER_SECONDS)
        self._receiving = asyncio.create_task(
            self._receive(self._channel), name="asyncpoll:hub-receive"
        )

    async def _choose_group(self) -> None:
        """Asked each time: the database may have been moved to another server."""
        try:
            self._group = group_of(await self._identify())
        except StoreUnavailable:
            if not self._group:
                raise

    async def _end_receiving(self) -> None:
        task, self._receiving = self._receiving, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task}, timeout=_LAYER_SECONDS)
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                emit("link.failed", error=error)

    async def _receive(self, channel: str) -> None:
        while True:
            message = unpack(await self._layer.receive(channel))
            if message is not None:
                self._hub.receive(message)


async def _empty(layer: Any) -> None:
    """Drop the layer's connections. The core Redis layer's flush() would delete everybody's keys."""
    if hasattr(layer, "close_pools"):
        await layer.close_pools()
    else:
        await layer.flush()
