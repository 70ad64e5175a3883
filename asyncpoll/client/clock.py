"""Time as drivers see it: monotonic, and instant while testing."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType

from asyncpoll.client.hosts import remember_hosts


class Clock:
    """The time of one wait. While testing, a sleep only moves this clock: lifetimes end as they would."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic() + self._skipped

    def sleep(self, seconds: float) -> None:
        """Block for so long."""
        if not self._skips(seconds):
            time.sleep(seconds)

    async def asleep(self, seconds: float) -> None:
        """Let others run for so long."""
        await asyncio.sleep(0 if self._skips(seconds) else seconds)

    def _skips(self, seconds: float) -> bool:
        if _testing.on:
            self._skipped += seconds
        return _testing.on


class _Testing:
    on = False


_testing = _Testing()


class set_testing:
    """Make all pauses between requests instant, for your own tests: `set_testing()`, or `with set_testing():`.

    Requests are still made, holds still held. What was learnt of hosts is forgotten, and nothing is learnt.
    """

    def __init__(self, on: bool = True) -> None:
        self._before = _testing.on
        _switch(on)

    def __enter__(self) -> set_testing:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _switch(self._before)


def is_testing() -> bool:
    """True while pauses are instant, so that nothing can be learnt from how long a wait took."""
    return _testing.on


def _switch(on: bool) -> None:
    _testing.on = on
    remember_hosts(not on)
