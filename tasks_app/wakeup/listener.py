"""One LISTEN connection that knows within two seconds when it has gone deaf.

Only the loop's own task touches the connection: it alternates a NOTIFY to itself with reading what arrived. A watchdog
that misses the echo shuts the socket down, which is the one way to end a half-open connection that neither waits for
TCP nor blocks on the connection's lock.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import psycopg
from psycopg import AsyncConnection, sql

from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import dsn, echo, harden
from tasks_app.store.pool import execute
from tasks_app.store.silence import cut
from tasks_app.wakeup.pooler import refuse_transaction_pooler

PROBE_SECONDS = 1.0
# Two missed echoes; at three, a hub's promise to answer within 3 s of a commit would be broken.
DEAF_SECONDS = 2.0
# A session that says nothing for this long is ended by the server, so that a frozen process frees what it holds.
_IDLE_SESSION_MS = 3_000


class Ear(Protocol):
    """Who is told what a listener hears. No method but `connected` may block."""

    async def connected(self, connection: AsyncConnection) -> None:
        """LISTEN is in force on a new connection; nothing heard before it may be trusted."""

    def heard(self, channel: str, payload: str) -> None:
        """A notification arrived."""

    def beat(self) -> None:
        """Our own NOTIFY came back: everything committed before it has been heard."""

    def lost(self) -> None:
        """The connection is gone."""


class Gate(Protocol):
    """Who decides when a connection may listen, and for how long. `election.Election` is one."""

    async def admit(self, connection: AsyncConnection, alive: Callable[[], None]) -> None:
        """Return once this connection may listen; call `alive` with each sign of life of the server until then."""

    def is_over(self) -> bool:
        """Must it stop listening? Asked once a second or more often."""

    def left(self) -> float:
        """The connection is gone. Gives the seconds to stay away."""


class OpenGate:
    """Everybody may listen."""

    async def admit(self, connection: AsyncConnection, alive: Callable[[], None]) -> None:
        """At once."""

    def is_over(self) -> bool:
        """Never."""
        return False

    def left(self) -> float:
        """Come back at once."""
        return 0.0


class Listener(Loop):
    """Keeps one connection listening on `channels` and reconnects it for ever."""

    name = "listener"
    longest_pause_seconds = 1.0

    def __init__(
        self, application: str, channels: Sequence[str], ear: Ear, gate: Gate | None = None
    ) -> None:
        super().__init__()
        self._application = application
        self._channels = tuple(channels)
        self._ear = ear
        self._gate: Gate = gate or OpenGate()
        # A channel of our own: nobody else is woken by our probes, and the queue keeps one order over all channels.
        self._echo = f"asyncpoll_echo_{secrets.token_hex(8)}"
        self._connection: AsyncConnection | None = None
        self._alive_at = 0.0

    async def stop(self, within: float = 2.0) -> None:
        """Stop listening and close the connection."""
        await super().stop(within)
        self._drop()

    async def step(self) -> float:
        """One life of a connection, from connecting to its end. Raises what ended it; the loop backs off."""
        connection = await self._connect()
        watchdog = asyncio.create_task(self._watch(connection), name="asyncpoll:listener-watchdog")
        try:
            await self._gate.admit(connection, self._note_life)
            await self._begin_listening(connection)
            await self._ear.connected(connection)
            self._failures = 0
            await self._listen(connection)
        finally:
            watchdog.cancel()
            self._drop()
            self._ear.lost()
            pause = self._gate.left()
        return pause

    async def _connect(self) -> AsyncConnection:
        keywords = dsn.listen_parameters(self._application)
        connection = await AsyncConnection.connect(
            **keywords, autocommit=True, prepare_threshold=None
        )
        self._connection = connection
        self._note_life()
        try:
            await refuse_transaction_pooler(connection, keywords)
            # Afterwards: as connection options these settings are refused by poolers.
            await execute(connection, harden(_IDLE_SESSION_MS))
        except BaseException:
            # A cancellation as well: nobody else would close it.
            self._drop()
            raise
        return connection

    async def _begin_listening(self, connection: AsyncConnection) -> None:
        for channel in (*self._channels, self._echo):
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        self._note_life()
        emit("listener.connected", application=self._application)

    async def _listen(self, connection: AsyncConnection) -> None:
        """Hear until the gate says that it is over."""
        next_probe = time.monotonic()
        while not self._gate.is_over():
            now = time.monotonic()
            if now >= next_probe:
                next_probe = now + PROBE_SECONDS
                await execute(connection, echo(self._echo))
            async for notification in connection.notifies(timeout=max(0.0, next_probe - now)):
                self._hear(notification)

    def _hear(self, notification: psycopg.Notify) -> None:
        if notification.channel == self._echo:
            self._note_life()
            self._ear.beat()
        else:
            self._ear.heard(notification.channel, notification.payload)

    def _note_life(self) -> None:
        self._alive_at = time.monotonic()

    async def _watch(self, connection: AsyncConnection) -> None:
        # Not an Event per echo: a watchdog has to notice that nothing happens.
        while (silence := time.monotonic() - self._alive_at) < DEAF_SECONDS:  # noqa: ASYNC110
            await asyncio.sleep(DEAF_SECONDS - silence)
        emit("listener.deaf", application=self._application, silence_seconds=silence)
        cut(connection)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Not close(), which may wait for the dead server.
            connection.pgconn.finish()
