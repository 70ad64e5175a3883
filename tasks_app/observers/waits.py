"""Waits as Prometheus metrics. Thousands are answered at once, so noting one may take a microsecond or two.

With the library's own counters, which lock each step, it took four: a sixth of all that a wait costs apart from HTTP.
These belong to the event loop that answers.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from asyncpoll.contract import Outcome
from tasks_app.wakeup.reader import Cause

_HOLD_SECONDS = (0.005, 0.05, 0.25, 1, 2.5, 5, 10, 20, 30, 60)
WAKE_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5)


class Tally:
    """How many values fell below which bound, and their sum."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """One more."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self._counts)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many fell between two bounds, those above the last one at the end."""
        return tuple(self._counts)

    @property
    def buckets(self) -> list[tuple[str, float]]:
        """As Prometheus has them: up to each bound, those below the lower ones included."""
        bounds = [floatToGoString(bound) for bound in (*self._bounds, float("inf"))]
        return list(zip(bounds, accumulate(self._counts), strict=True))


class Waits(Collector):
    """Every wait that was answered in this process."""

    def __init__(self) -> None:
        self.ahead_seconds: float | None = None
        """What the database's clock is ahead of this machine's, once somebody has compared them."""
        self._held: dict[tuple[str, str], Tally] = {}
        self._wake = Tally(WAKE_SECONDS)

    @property
    def wakes(self) -> tuple[int, ...]:
        """How many ends were told how late: counts by WAKE_SECONDS, since this process began."""
        return self._wake.counts

    def note(self, facts: dict[str, Any]) -> None:
        """One was answered."""
        outcome, held_seconds = facts["outcome"], facts["held_seconds"]
        key = (facts["route"], outcome)
        tally = self._held.get(key)
        if tally is None:
            tally = self._held[key] = Tally(_HOLD_SECONDS)
        tally.add(held_seconds)
        if outcome is Outcome.TERMINAL and self.ahead_seconds is not None:
            self._note_wake(facts, held_seconds, self.ahead_seconds)

    def _note_wake(self, facts: dict[str, Any], held_seconds: float, ahead: float) -> None:
        """Who found the end at its first look was not woken. Who came between a commit and its hint waited since then."""
        finished_at = facts.get("finished_at")
        if finished_at is not None and facts["cause"] not in (None, Cause.FIRST):
            since_commit = time.time() + ahead - finished_at.timestamp()
            self._wake.add(min(max(0.0, since_commit), held_seconds))

    def collect(self) -> Iterator[Metric]:
        """Answers, how long they were held, and how late they were."""
        answered = CounterMetricFamily(
            "asyncpoll_holds_answered", "Waits answered", labels=["route", "outcome"]
        )
        held = HistogramMetricFamily(
            "asyncpoll_hold_seconds", "How long waits were held", labels=["route", "outcome"]
        )
        wake = HistogramMetricFamily(
            "asyncpoll_wake_latency_seconds",
            "Commit of a task's end to a held answer",
            buckets=self._wake.buckets,
            sum_value=self._wake.sum,
        )
        for key, tally in self._held.items():
            answered.add_metric(key, tally.count)
            held.add_metric(key, tally.buckets, tally.sum)
        yield from (answered, held, wake)
