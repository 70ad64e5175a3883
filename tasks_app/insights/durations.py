"""The measured durations of one type of task, and their percentiles."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from importlib.util import find_spec
from math import ceil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tasks_app.insights.sketch import Sketch

MOST_EXACT: Final = 20_000
"""So many durations are kept as they are, in 160 kB; more become a sketch, where ddsketch is installed."""
_LEAST: Final = 10
# A client's installation has none: there, more durations than that take more memory, eight bytes each.
_CAN_SKETCH: Final = find_spec("ddsketch") is not None


def needed(percent: int) -> int:
    """How many samples a percentile needs: one that may be expected above it, and ten in any case.

    With n samples, n · (1 - p) of them lie above the p-quantile. Where that is less than one, the nearest rank is the
    largest sample, which says how unlucky the sample was and not where the percentile is.
    """
    return max(_LEAST, ceil(100 / (100 - percent)))


def rank(percent: int, count: int) -> int:
    """Which of `count` samples in ascending order, from 0, is the percentile.

    The nearest rank: the smallest sample that at least `percent` % do not exceed, ⌈p · n⌉ counted from 1. Definition 1
    of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American Statistician 50 (1996), and
    Postgres's percentile_disc: always a duration that was measured, never one between two.
    """
    return max(0, -(-percent * count // 100) - 1)


class Durations:
    """Milliseconds: MOST_EXACT of them as they are, more of them within the error of a sketch, in bounded memory."""

    def __init__(self, milliseconds: Iterable[float] = (), sketch: Sketch | None = None) -> None:
        self._exact = array("d")
        self._is_sorted = True
        self._sketch = sketch
        for each in milliseconds:
            self.add(each)

    def __len__(self) -> int:
        return len(self._exact) if self._sketch is None else self._sketch.count

    @property
    def relative_error(self) -> float:
        """Of a percentile; 0: it is a duration that was measured."""
        return 0.0 if self._sketch is None else self._sketch.relative_error

    def add(self, milliseconds: float) -> None:
        """One more."""
        if self._sketch is None and _CAN_SKETCH and len(self._exact) >= MOST_EXACT:
            self._sketch = _sketched(self._exact)
            self._exact = array("d")
        if self._sketch is None:
            self._exact.append(milliseconds)
            self._is_sorted = False
        else:
            self._sketch.add(milliseconds)

    def percentile(self, percent: int) -> float | None:
        """The percentile by nearest rank (see `rank`); None where there are fewer samples than it needs."""
        count = len(self)
        if count < needed(percent):
            return None
        at = rank(percent, count)
        return self._sorted()[at] if self._sketch is None else self._sketch.ranked(at)

    def _sorted(self) -> array[float]:
        if not self._is_sorted:
            self._exact = array("d", sorted(self._exact))
            self._is_sorted = True
        return self._exact


def _sketched(values: Iterable[float]) -> Sketch:
    from tasks_app.insights.sketch import Sketch

    sketch = Sketch()
    for value in values:
        sketch.add(value)
    return sketch
