"""The figures of a run, and of several runs of the same thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.figures import Measured, medians


@dataclass(frozen=True, slots=True)
class Figures(Measured):
    """What one server showed with so many requests held. `failed` counts answers that were wrong or never came."""

    subject: str
    held: int
    cpu_us: float
    """CPU per hold, from before connecting to parked, in microseconds."""
    cpu_request_us: float
    """The part of it that came after the connections were open."""
    memory_kb: float
    """Memory per hold that is the server's alone, in KB of 1,024 bytes."""
    resident_kb: float
    """The same with what is shared."""
    threads: int
    wake_p50_ms: float
    wake_p95_ms: float
    wake_p99_ms: float
    wake_sent_p50_ms: float
    """Like wake_p50_ms, from the moment that the commit was sent."""
    commits_per_second: float
    """The pace that was kept while wakes were measured."""
    storm_s: float
    storm_commits_s: float
    """The part of it until the last commit returned."""
    failed: int


def median_of(runs: Sequence[Figures]) -> Figures:
    """The median of each figure over runs of one subject with one number held; failures are summed up."""
    middle = medians(runs, but=("subject", "held", "failed"))
    return replace(middle, failed=sum(run.failed for run in runs))
