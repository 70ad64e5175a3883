"""The wake-up machinery of one process and event loop, wired together and started at first use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from uuid import UUID

from channels import layers

from tasks_app import conf
from tasks_app.errors import ConfigurationError
from tasks_app.owned import owned
from tasks_app.store import read, read_results
from tasks_app.store.pool import Pool, close_loop_pool, loop_pool
from tasks_app.wakeup.bridge import CHANGED_CHANNEL, WORK_CHANNEL, Bridge
from tasks_app.wakeup.hub import Hub
from tasks_app.wakeup.link import Link
from tasks_app.wakeup.listener import Listener
from tasks_app.wakeup.reader import Rows
from tasks_app.wakeup.sweeper import Sweeper
from tasks_app.wakeup.tokens import Tokens


class WakeupService:
    """Listener, bridge, hub and reader. `hub` is what a wait uses, `tokens` what checks who may."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        # Private to us: one instance is shared by everybody who asks get_channel_layer() for the alias.
        layer = _private_layer()
        self.hub = Hub(self._read)
        self.tokens = Tokens(pool, self.hub.trust)
        self.hub.forget_token = self.tokens.forget
        self.bridge = Bridge(layer)
        self.listener = Listener("listener", [CHANGED_CHANNEL, WORK_CHANNEL], self.bridge)
        self.link = Link(layer, self.hub)
        self.sweeper = Sweeper(self.hub)

    def start(self) -> None:
        """Begin; a database or layer that is away is waited for in the background."""
        for loop in (self.link, self.bridge, self.hub.reader, self.sweeper, self.listener):
            loop.start()

    async def stop(self) -> None:
        """End everything; waiters are left as they are."""
        for loop in (self.listener, self.bridge, self.link, self.sweeper, self.hub.reader):
            await loop.stop()

    async def results(self, ids: Sequence[UUID]) -> Mapping[UUID, str | None]:
        """The JSON text of large results, which rows are read without."""
        return await self.pool.run(read_results(ids))

    def _read(self, ids: list[UUID]) -> Awaitable[Rows]:
        return self.pool.run(read(ids))


_services: dict[asyncio.AbstractEventLoop, WakeupService] = {}


async def current_service() -> WakeupService:
    """The running event loop's service, started at first use."""
    # Owned: the client of the first request may hang up, and others wait for the same start.
    service = running_service()
    return service if service is not None else await owned(_start())


def running_service() -> WakeupService | None:
    """The running event loop's service, if it was started."""
    return _services.get(asyncio.get_running_loop())


async def _start() -> WakeupService:
    pool = await loop_pool()
    service = running_service()
    if service is None:
        for closed in [known for known in _services if known.is_closed()]:
            del _services[closed]
        service = _services[asyncio.get_running_loop()] = WakeupService(pool)
        service.start()
    return service


async def start_service() -> None:
    """Start the service before the first request needs it."""
    await current_service()


async def stop_service() -> None:
    """Stop the running loop's service and close its pool."""
    service = _services.pop(asyncio.get_running_loop(), None)
    if service is not None:
        await service.stop()
    await close_loop_pool()


def _private_layer() -> object:
    alias = conf.current().CHANNEL_LAYER
    if alias not in layers.channel_layers:
        raise ConfigurationError(
            f"CHANNEL_LAYERS has no {alias!r}, which carries wake-ups; add "
            f"CHANNEL_LAYERS[{alias!r}] = {{'BACKEND': 'channels.layers.InMemoryChannelLayer'}}."
        )
    return layers.channel_layers.make_backend(alias)
