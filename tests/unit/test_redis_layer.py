"""How the Redis layer reaches its servers."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from redis.asyncio import Connection
from redis.exceptions import ConnectionError as RedisConnectionError

from tasks_app.wakeup.redis import (
    SOCKET_SECONDS,
    SafeConnection,
    SafeSSLConnection,
    SafeUnixDomainSocketConnection,
    safe_host,
)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("redis://me:secret@cache.example:6380/2", SafeConnection),
        ("rediss://cache.example", SafeSSLConnection),
        ("unix:///run/valkey.sock", SafeUnixDomainSocketConnection),
    ],
)
def test_every_kind_of_url_gets_a_safe_connection_with_time_limits(url, kind):
    """Also those whose URL stands for a class of redis-py's."""
    host = safe_host(url)
    assert host["connection_class"] is kind
    assert host["socket_timeout"] == host["socket_connect_timeout"] == SOCKET_SECONDS


def test_options_of_a_dictionary_are_kept():
    """As channels_redis takes them; a class of the project's own is left alone."""

    class Own(Connection):
        pass

    host = safe_host({"host": "cache.example", "port": 6380, "socket_timeout": 4})
    assert (host["host"], host["port"], host["socket_timeout"]) == ("cache.example", 6380, 4)
    assert host["connection_class"] is SafeConnection
    assert safe_host({"host": "x", "connection_class": Own})["connection_class"] is Own


async def test_a_socket_that_died_is_an_error_and_not_silence():
    """redis-py takes ETIMEDOUT for "no message yet"; asked again at once, it would never let anything else run."""
    connection = SafeConnection()
    reader = asyncio.StreamReader()
    reader.set_exception(TimeoutError(110, "Connection timed out"))
    connection._reader = reader
    connection._writer = SimpleNamespace(close=lambda: None)
    with pytest.raises(RedisConnectionError, match="timed out"):
        await connection.read_response(timeout=0.1)
