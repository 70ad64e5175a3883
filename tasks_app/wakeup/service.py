"""The wake-up machinery of one process and event loop, wired together and started at first use."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from channels import layers
from channels.layers import InMemoryChannelLayer

from tasks_app import conf
from tasks_app.errors import ConfigurationError
from tasks_app.loops import Loop
from tasks_app.owned import owned
from tasks_app.store import filled_inboxes, identify, read, read_results
from tasks_app.store.pool import Pool, close_loop_pool, loop_pool
from tasks_app.wakeup.bridge import CHANGED_CHANNEL, WORK_CHANNEL, Bridge
from tasks_app.wakeup.election import Election, Outlook
from tasks_app.wakeup.hub import Hub
from tasks_app.wakeup.link import Link
from tasks_app.wakeup.listener import Gate, Listener
from tasks_app.wakeup.pooler import check_listen_connection
from tasks_app.wakeup.reader import Rows
from tasks_app.wakeup.sweeper import Sweeper
from tasks_app.wakeup.tokens import Tokens

Part = Literal["own", "leader", "standby", "elsewhere"]


@dataclass(frozen=True, slots=True)
class LinkState:
    """How commits reach this process."""

    bridge: Part
    """own: this process listens for itself alone. leader: it relays for all. standby: another one does, and this one
    would take over. elsewhere: another one does."""
    trusted: bool
    """Wake-ups are heard, and memory may answer."""
    layer: bool
    """The channel layer does what it is asked for."""


class WakeupService:
    """Listener, bridge, hub and reader. `hub` is what a wait uses, `tokens` what checks who may."""

    def __init__(self, pool: Pool, may_lead: bool | None = None) -> None:
        """`may_lead` None: as the settings say."""
        self.pool = pool
        # Private to us: one instance is shared by everybody who asks get_channel_layer() for the alias.
        layer = private_layer()
        self.hub = Hub(self._read, filled=self._filled)
        self.tokens = Tokens(pool, self.hub.trust)
        self.hub.forget_token = self.tokens.forget
        self.bridge = Bridge(layer)
        self.link = Link(layer, self.hub, self._identify)
        self.election = Election(
            Outlook(
                heard_at=lambda: self.hub.trust.heard_at,
                heard_own_at=self._heard_own_at,
                reaches_layer=lambda: self.link.is_joined,
            )
        )
        self.is_shared = is_shared(layer)
        gate: Gate | None = self.election if self.is_shared else None
        self.listener = Listener("listener", [CHANGED_CHANNEL, WORK_CHANNEL], self.bridge, gate)
        self.sweeper = Sweeper(self.hub)
        self._loops: list[Loop] = [
            self.link,
            self.bridge,
            self.hub.reader,
            self.hub.inboxes,
            self.sweeper,
        ]
        if _listens(self.is_shared, may_lead):
            self._loops.append(self.listener)

    @property
    def state(self) -> LinkState:
        """How commits reach this process now."""
        return LinkState(
            bridge=self._part,
            trusted=self.hub.trust.active,
            layer=self.link.is_joined and not self.bridge.is_failing,
        )

    def start(self) -> None:
        """Begin; a database or layer that is away is waited for in the background."""
        for loop in self._loops:
            loop.start()

    async def stop(self) -> None:
        """End everything, the listener first; waiters are left as they are."""
        for loop in reversed(self._loops):
            await loop.stop()

    async def results(self, ids: Sequence[UUID]) -> Mapping[UUID, str | None]:
        """The JSON text of large results, which rows are read without."""
        return await self.pool.run(read_results(ids))

    @property
    def _part(self) -> Part:
        if not self.is_shared:
            return "own"
        if self.listener not in self._loops:
            return "elsewhere"
        return "leader" if self.election.is_leading else "standby"

    def _heard_own_at(self) -> float:
        trust = self.hub.trust
        return trust.heard_at if trust.epoch == self.bridge.epoch else float("-inf")

    def _read(self, ids: list[UUID]) -> Awaitable[Rows]:
        return self.pool.run(read(ids))

    def _filled(self, owners: list[str]) -> Awaitable[Iterable[str]]:
        return self.pool.run(filled_inboxes(owners))

    def _identify(self) -> Awaitable[str]:
        return self.pool.run(identify())


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
    """Start the service before the first request needs it. Raises PoolerInTheWay where it would be deaf."""
    if _listens(is_shared(private_layer())):
        await check_listen_connection("listener")
    await current_service()


async def stop_service() -> None:
    """Stop the running loop's service and close its pool."""
    service = _services.pop(asyncio.get_running_loop(), None)
    if service is not None:
        await service.stop()
    await close_loop_pool()


def private_layer() -> Any:
    """A new instance of the layer that carries wake-ups. Raises ConfigurationError where there is none."""
    alias = conf.current().CHANNEL_LAYER
    if alias not in layers.channel_layers:
        raise ConfigurationError(
            f"CHANNEL_LAYERS has no {alias!r}, which carries wake-ups; add "
            f"CHANNEL_LAYERS[{alias!r}] = {{'BACKEND': 'channels.layers.InMemoryChannelLayer'}}."
        )
    return layers.channel_layers.make_backend(alias)


def is_shared(layer: Any) -> bool:
    """Does `layer` reach other processes, so that one bridge does for all of them?"""
    return not isinstance(layer, InMemoryChannelLayer)


def _listens(shared: bool, may_lead: bool | None = None) -> bool:
    """Does this process have a connection that listens, or stands by to?"""
    return not shared or (conf.current().BRIDGE if may_lead is None else may_lead)
