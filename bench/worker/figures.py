"""The figures of one task queue at one size of batch, and of one size of table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures import Measured, medians


@dataclass(frozen=True, slots=True)
class Figures(Measured):
    """What one worker process showed."""

    subject: str
    batch: int
    tasks: int
    """The backlog that it was started on."""
    enqueued_per_second: float
    ran_per_second: float
    """From the first task's start to the last one's."""
    completed_per_second: float
    """From the first task's start until none was left that waited or ran."""
    cpu_us: float
    """CPU time of the worker's processes, per task."""
    pickup_p50_ms: float
    pickup_p99_ms: float


def median_of(runs: Sequence[Figures]) -> Figures:
    """The median of each figure over runs of one subject with one size of batch."""
    return medians(runs, but=("subject", "batch"))


@dataclass(frozen=True, slots=True)
class Cost(Measured):
    """Medians, in microseconds per task, beside `finished` tasks: until the answer was there, and CPU of Postgres."""

    finished: int
    claim_us: float
    claim_cpu_us: float
    commit_us: float
    commit_cpu_us: float


@dataclass(frozen=True, slots=True)
class Cancels(Measured):
    """How long it took `count` running tasks to see that they were cancelled."""

    count: int
    p50_ms: float
    p99_ms: float
