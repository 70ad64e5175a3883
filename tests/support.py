"""Waiting for facts, never for time."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import chain, cycle, repeat
from typing import TypeVar

T = TypeVar("T")

# Only a bound on how long a broken test hangs; a passing one never waits for it.
PATIENCE_SECONDS = 60.0
_SOON_SECONDS = 0.01
# What has not come soon, as a process that starts, would only be slowed down by being looked at a hundred times a second.
_LATER_SECONDS = 0.03
_SOON_LOOKS = 30


def eventually(fact: Callable[[], T], timeout: float = PATIENCE_SECONDS) -> T:
    """Look at `fact()` until it is truthy and give its value; an AssertionError with the last value after `timeout`."""
    deadline = time.monotonic() + timeout
    pauses = _pauses()
    while not (value := fact()):
        assert time.monotonic() < deadline, f"not true within {timeout} s; last seen: {value!r}"
        time.sleep(next(pauses))
    return value


async def aeventually(fact: Callable[[], T | Awaitable[T]], timeout: float = PATIENCE_SECONDS) -> T:
    """`eventually` on an event loop; `fact` may be a coroutine function."""
    deadline = time.monotonic() + timeout
    pauses = _pauses()
    while True:
        value = fact()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value  # type: ignore[return-value]
        assert time.monotonic() < deadline, f"not true within {timeout} s; last seen: {value!r}"
        await asyncio.sleep(next(pauses))


def _pauses() -> Iterator[float]:
    return chain(repeat(_SOON_SECONDS, _SOON_LOOKS), repeat(_LATER_SECONDS))


def _own_ports() -> Iterator[int]:
    """Ports that the kernel gives to nobody's outgoing connection, and no other process of this test run tries."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw")) % 10
    first = 10_000 + 2_000 * worker
    start = os.getpid() * 20 % 2_000
    return cycle(first + (start + offset) % 2_000 for offset in range(2_000))


_ports = _own_ports()


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses now, and that is not given again soon."""
    while True:
        port = next(_ports)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
