"""What the overview shows, measured at most once a second however many look at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, TypeVar

from django.db import transaction

from tasks_app import conf
from tasks_app.admin.display import moment
from tasks_app.insights.durations import Durations
from tasks_app.insights.sketch import Sketch
from tasks_app.store import (
    Call,
    Hour,
    Minute,
    QueueDepth,
    Standing,
    depths,
    ends_by_hour,
    ends_by_minute,
    hasten,
    standing,
)
from tasks_app.store.driver import run

T = TypeVar("T")
FAILED_WITHIN_SECONDS: Final = 3_600.0
_FRESH_SECONDS = 1.0
# A database that is slower has better things to do.
_MOST_MILLISECONDS = 2_000
_PERCENTS = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and its types. `oldest_seconds`: how long those next in line wait; `is_more`: only so many were counted."""

    name: str
    ready: int
    oldest_seconds: float
    is_more: bool
    types: Sequence[Standing]


@dataclass(frozen=True, slots=True)
class Span:
    """The ends of a minute or an hour that began at `at`. `ran` and `waited`: seconds at P50, P95 and P99, or None."""

    at: datetime
    succeeded: int
    failed: int
    cancelled: int
    ran: Sequence[float | None]
    waited: Sequence[float | None]

    @property
    def label(self) -> str:
        """`at` as the page writes it."""
        return moment(self.at, "minutes")

    @property
    def seconds(self) -> int:
        """`at` as seconds since 1970."""
        return round(self.at.timestamp())

    @property
    def ran_and_waited(self) -> list[float | None]:
        """Both, three values each."""
        missing = (None,) * len(_PERCENTS)
        return [*(self.ran or missing), *(self.waited or missing)]


@dataclass(frozen=True, slots=True)
class Range:
    """A choice of the charts: how far back, and in what steps."""

    key: str
    label: str
    step_seconds: int
    read: Callable[[], list[Span]]


class Kept:
    """The last answers to a few questions, for all threads: one asks, the others wait for its answer."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._answers: dict[object, tuple[float, Any]] = {}

    def get(self, ask: Callable[[], T]) -> T:
        """What `ask` gives, or gave less than a second ago."""
        with self._lock:
            at, answer = self._answers.get(ask, (float("-inf"), None))
            if self._now() - at >= _FRESH_SECONDS:
                answer = ask()
                self._answers[ask] = (self._now(), answer)
            return answer


def queues() -> list[Queue]:
    """What is due, waits, runs and has failed, by queue and type."""
    lines = {each.queue: each for each in hastened(depths())}
    rows = hastened(standing(FAILED_WITHIN_SECONDS))
    found = groupby(rows, key=lambda row: row.queue)
    return [_queue(lines.get(name), name, list(types)) for name, types in found]


def _queue(line: QueueDepth | None, name: str, types: list[Standing]) -> Queue:
    ready = sum(each.due for each in types)
    if line is None:
        return Queue(name, ready, 0.0, False, types)
    return Queue(name, max(ready, line.ready), line.oldest_seconds, line.ready > ready, types)


def _last_hour() -> list[Span]:
    return [_of_minute(each) for each in hastened(ends_by_minute(3_600.0))]


def _last_day() -> list[Span]:
    return [_of_hour(each) for each in hastened(ends_by_hour(24))]


def hastened(call: Call[T]) -> T:
    """What a call gives that a page can do without: it has two seconds. Raises OperationalError."""
    with transaction.atomic(using=conf.current().DATABASE):
        run(hasten(_MOST_MILLISECONDS))
        return run(call)


RANGES: Final = (
    Range("hour", "Last hour", 60, _last_hour),
    Range("day", "Last day", 3_600, _last_day),
)


def _of_minute(minute: Minute) -> Span:
    return Span(
        datetime.fromtimestamp(minute.at, UTC),
        minute.succeeded,
        minute.failed,
        minute.cancelled,
        minute.ran,
        minute.waited,
    )


def _of_hour(hour: Hour) -> Span:
    return Span(
        datetime.fromtimestamp(hour.at, UTC),
        hour.succeeded,
        hour.failed,
        hour.cancelled,
        _percentiles(hour.ran),
        _percentiles(hour.waited),
    )


def _percentiles(bins: Sequence[tuple[int, int]]) -> list[float | None]:
    """In seconds; None where there are fewer samples than a percentile needs."""
    durations = Durations(sketch=Sketch(bins))
    found = [durations.percentile(percent) for percent in _PERCENTS]
    return [None if each is None else each / 1000 for each in found]


kept = Kept()
