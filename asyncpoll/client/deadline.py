"""A bound on a whole exchange of the blocking driver: httpx only bounds the wait for each part of an answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final


class _Current(threading.local):
    ends: float | None = None


_current = _Current()
# Enough to find what has arrived already, and no more.
_LEAST_SECONDS: Final = 0.001
_MAKES_A_STREAM: Final = (
    "connect_tcp.complete",
    "connect_unix_socket.complete",
    "start_tls.complete",
)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Reads of this thread end by then, on connections that were made under `limit`."""
    _current.ends = time.monotonic() + seconds
    try:
        yield
    finally:
        _current.ends = None


def limit(name: str, info: Mapping[str, Any]) -> None:
    """Take what httpcore traces: each new connection's reads are bounded from then on."""
    if name.endswith(_MAKES_A_STREAM):
        stream = info["return_value"]
        stream.read = _bounded(stream.read)


def _bounded(read: Callable[..., bytes]) -> Callable[..., bytes]:
    def bounded_read(max_bytes: int, timeout: float | None = None) -> bytes:
        return read(max_bytes, timeout=_left(timeout))

    return bounded_read


def _left(timeout: float | None) -> float | None:
    if _current.ends is None:
        return timeout
    left = max(_current.ends - time.monotonic(), _LEAST_SECONDS)
    return left if timeout is None else min(timeout, left)
