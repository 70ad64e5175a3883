"""Which seconds of a run were with pruning and which without."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.prune.figures import Sides, spread

# What was on its way when a turn began belongs to neither.
_SETTLE_SECONDS = 0.1


class Turns:
    """One after the other, so that a change of the machine's pace meets both sides alike."""

    def __init__(self) -> None:
        self._spans: dict[bool, list[tuple[float, float]]] = {True: [], False: []}

    @contextmanager
    def one(self, pruned: bool) -> Iterator[None]:
        """A turn lasts as long."""
        began = time.monotonic() + _SETTLE_SECONDS
        yield
        self._spans[pruned].append((began, time.monotonic()))

    def split(self, found: Sequence[tuple[float, float]]) -> Sides:
        """Of moments (by the monotonic clock) with milliseconds: those with pruning and those without."""
        return Sides(spread(self._during(True, found)), spread(self._during(False, found)))

    def _during(self, pruned: bool, found: Sequence[tuple[float, float]]) -> list[float]:
        spans = self._spans[pruned]
        return [took for at, took in found if any(began <= at < ended for began, ended in spans)]
