"""Waiting for facts, never for time."""

from __future__ import annotations

import asyncio
import inspect
import socket
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

# Only a bound on how long a broken test hangs; a passing one never waits for it.
PATIENCE_SECONDS = 60.0
_LOOK_EVERY_SECONDS = 0.01


def eventually(fact: Callable[[], T], timeout: float = PATIENCE_SECONDS) -> T:
    """Look at `fact()` until it is truthy and give its value; an AssertionError with the last value after `timeout`."""
    deadline = time.monotonic() + timeout
    while not (value := fact()):
        assert time.monotonic() < deadline, f"not true within {timeout} s; last seen: {value!r}"
        time.sleep(_LOOK_EVERY_SECONDS)
    return value


async def aeventually(fact: Callable[[], T | Awaitable[T]], timeout: float = PATIENCE_SECONDS) -> T:
    """`eventually` on an event loop; `fact` may be a coroutine function."""
    deadline = time.monotonic() + timeout
    while True:
        value = fact()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value  # type: ignore[return-value]
        assert time.monotonic() < deadline, f"not true within {timeout} s; last seen: {value!r}"
        await asyncio.sleep(_LOOK_EVERY_SECONDS)


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
