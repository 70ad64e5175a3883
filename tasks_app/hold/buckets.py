"""Token buckets, one for each of a bounded number of names."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable


class Buckets:
    """Each holds up to `burst`, and fills by `rate` a second. The name that has been quiet longest is forgotten first."""

    def __init__(
        self, rate: float, burst: float, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._most, self._clock = rate, burst, most, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def has(self, name: str) -> bool:
        """True unless the bucket is empty."""
        return self._now(name)[0] >= 1

    def take(self, name: str) -> None:
        """Take one out; an empty bucket stays empty."""
        left, now = self._now(name)
        self._left[name] = (max(0.0, left - 1), now)
        self._left.move_to_end(name)
        if len(self._left) > self._most:
            self._left.popitem(last=False)

    def give_back(self, name: str) -> None:
        """Put back what was taken."""
        left, now = self._now(name)
        self._left[name] = (min(self._burst, left + 1), now)

    def _now(self, name: str) -> tuple[float, float]:
        now = self._clock()
        left, at = self._left.get(name, (self._burst, now))
        return min(self._burst, left + (now - at) * self._rate), now
