"""Many durations in little memory: DDSketch's mapping and bins, which are also how hourly rollups are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from ddsketch.mapping import LogarithmicMapping

RELATIVE_ERROR: Final = 0.01
"""What a percentile from bins may differ from the measured value, as a share of it.

Masson, Rim and Lee, "DDSketch: A Fast and Fully-Mergeable Quantile Sketch with Relative-Error Guarantees", PVLDB 12
(2019): with γ = (1 + α) / (1 - α), the bin of a value v is ⌈log_γ v⌉, and 2γ^bin / (γ + 1) is within α of all in it.
"""
SHORTEST_MS: Final = 0.001
"""What is shorter counts as this: a microsecond."""
_MAPPING: Final = LogarithmicMapping(RELATIVE_ERROR)
GAMMA: Final[float] = _MAPPING.gamma


def bin_of(milliseconds: float) -> int:
    """The bin that a duration falls into."""
    return int(_MAPPING.key(max(milliseconds, SHORTEST_MS)))


class Sketch:
    """Counts per bin. Two of them say of all their values what one would."""

    relative_error = RELATIVE_ERROR

    def __init__(self, bins: Iterable[tuple[int, int]] = ()) -> None:
        # Not DDSketch's own store, which takes five times as long to fill from bins that were counted elsewhere.
        self._counts: Counter[int] = Counter()
        self.count = 0
        for key, count in bins:
            self._counts[key] += count
            self.count += count

    def add(self, milliseconds: float) -> None:
        """One more."""
        self._counts[bin_of(milliseconds)] += 1
        self.count += 1

    def ranked(self, rank: int) -> float:
        """The value that `rank` others, from 0, are not above, within RELATIVE_ERROR."""
        keys = sorted(self._counts)
        below = accumulate(self._counts[key] for key in keys)
        found = next(key for key, count in zip(keys, below, strict=True) if count > rank)
        return float(_MAPPING.value(found))
