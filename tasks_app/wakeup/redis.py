"""The channel layer for several web processes: Channels' Redis pub/sub layer over connections that cannot freeze us.

When the kernel gives a connection up (ETIMEDOUT after a blackhole), redis-py takes the error for "no message yet" and
returns without suspending. The layer asks again at once, for ever, and the event loop never runs anything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer
from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.connection import parse_url
from redis.exceptions import ConnectionError as RedisConnectionError

# Without limits a publish to a server that has stalled would never return. Under a hub's two seconds of silence.
SOCKET_SECONDS = 1.0


class _Safe:
    """For a redis-py connection: a socket that has died is an error, also where no answer was expected yet."""

    async def read_response(self, *args: Any, **keywords: Any) -> Any:
        """Read one answer. Raises redis-py's ConnectionError once the socket has died."""
        reader = self._reader  # type: ignore[attr-defined]
        died = None if reader is None else reader.exception()
        if died is not None:
            await self.disconnect(nowait=True)  # type: ignore[attr-defined]
            raise RedisConnectionError(f"The connection died: {died}") from died
        return await super().read_response(*args, **keywords)  # type: ignore[misc]


class SafeConnection(_Safe, Connection):
    """redis-py's TCP connection, safe."""


class SafeSSLConnection(_Safe, SSLConnection):
    """redis-py's TLS connection, safe."""


class SafeUnixDomainSocketConnection(_Safe, UnixDomainSocketConnection):
    """redis-py's connection over a Unix socket, safe."""


_SAFE = {
    Connection: SafeConnection,
    SSLConnection: SafeSSLConnection,
    UnixDomainSocketConnection: SafeUnixDomainSocketConnection,
}


class RedisLayer(RedisPubSubChannelLayer):
    """`channels_redis.pubsub.RedisPubSubChannelLayer` with safe connections, time limits, and a flush that always works.

    `hosts` are as there: URLs (redis, rediss, unix), or dictionaries with an `address` and options of the connection.
    """

    def __init__(
        self, *, hosts: Sequence[str | dict[str, Any]] = ("redis://localhost:6379",), **options: Any
    ) -> None:
        super().__init__(hosts=[safe_host(host) for host in hosts], **options)

    async def flush(self) -> None:
        """Drop every connection and subscription of this event loop."""
        layer = self._get_layer()
        for shard in layer._shards:
            # Awaiting a receive task that died of an error raises that error, and the flush would stop half-way.
            if shard._receive_task is not None and shard._receive_task.done():
                shard._receive_task = None
        await layer.flush()


def safe_host(host: str | dict[str, Any]) -> dict[str, Any]:
    """What redis-py's connection pool is made with for `host`. Raises ValueError for a URL of another kind."""
    options: dict[str, Any] = {"address": host} if isinstance(host, str) else dict(host)
    if "address" in options:
        # Here rather than by the pool, where the class that a rediss or unix URL stands for would override ours.
        options |= parse_url(options.pop("address"))
    given = options.get("connection_class", Connection)
    return {
        "socket_timeout": SOCKET_SECONDS,
        "socket_connect_timeout": SOCKET_SECONDS,
        **options,
        "connection_class": _SAFE.get(given, given),
    }
