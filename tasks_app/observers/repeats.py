"""What goes on is said when it begins, and rarely from then on: an outage is not a thousand lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

SAID_AGAIN_SECONDS = 60.0


@dataclass(slots=True)
class _Said:
    at: float
    seen_at: float


class Repeats:
    """Which occurrences of a lasting trouble are worth a line: the first, and one a minute while it lasts."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said: dict[Hashable, _Said] = {}

    def is_news(self, trouble: Hashable) -> bool:
        """True if a line should be written about it now."""
        now = self._clock()
        said = self._said.get(trouble)
        if said is not None and now - said.seen_at < SAID_AGAIN_SECONDS:
            said.seen_at = now
            if now - said.at < SAID_AGAIN_SECONDS:
                return False
        self._forget_old(now)
        self._said[trouble] = _Said(now, now)
        return True

    def _forget_old(self, now: float) -> None:
        for trouble, said in list(self._said.items()):
            if now - said.seen_at >= SAID_AGAIN_SECONDS:
                del self._said[trouble]
