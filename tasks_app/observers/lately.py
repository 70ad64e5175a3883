"""What a tally has seen lately, where it counts since the process began."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class Lately:
    """The last `looks` differences of counts by `bounds`. Pure: whoever looks decides how often."""

    def __init__(self, bounds: Sequence[float], looks: int) -> None:
        self._bounds = bounds
        self._seen: deque[tuple[int, ...]] = deque([(0,) * (len(bounds) + 1)], maxlen=looks + 1)

    def look(self, counts: tuple[int, ...]) -> None:
        """The counts as they are now."""
        self._seen.append(counts)

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._seen[-1]) - sum(self._seen[0])

    def at(self, share: float) -> float | None:
        """The bound that this share of them did not exceed; None: there were none, or so many exceeded the last one."""
        wanted, below = share * self.count, 0
        for bound, new, old in zip(self._bounds, self._seen[-1], self._seen[0], strict=False):
            below += new - old
            if below and below >= wanted:
                return bound
        return None
