"""The time limits of attempts that begin together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tasks_app.worker.attempt import Attempt


class Deadline:
    """One timer for all attempts of a batch that have the same limit: one for each costs more than most of what it
    guards. `expire` is called with each attempt that is still guarded `seconds` after the first was."""

    __slots__ = ("_expire", "_guarded", "_loop", "_seconds", "_timer")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, expire: Callable[[Attempt], None]
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._expire = expire
        # Not a list of all: whoever is over is let go, with its arguments, while a long one goes on.
        self._guarded: set[Attempt] = set()
        self._timer: asyncio.TimerHandle | None = None

    def guard(self, attempt: Attempt) -> None:
        """It begins now."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._fire)
        self._guarded.add(attempt)

    def release(self, attempt: Attempt) -> None:
        """It is over."""
        self._guarded.discard(attempt)
        if not self._guarded and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        for attempt in tuple(self._guarded):
            self._expire(attempt)
