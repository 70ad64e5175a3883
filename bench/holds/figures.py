"""The figures of a run, and of several runs of the same thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Figures:
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

    def as_json(self) -> dict[str, Any]:
        """For a report."""
        return asdict(self)


def median_of(runs: Sequence[Figures]) -> Figures:
    """The median of each figure over runs of one subject with one number held; failures are summed up."""
    first = runs[0]
    values: dict[str, Any] = {
        each.name: median(getattr(run, each.name) for run in runs)
        for each in fields(Figures)
        if each.name not in ("subject", "held", "failed")
    }
    values["threads"] = round(values["threads"])
    return Figures(
        subject=first.subject, held=first.held, failed=sum(run.failed for run in runs), **values
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of `values` that `percent` of them do not exceed (nearest rank); NaN where there are none."""
    if not values:
        return float("nan")
    rank = max(1, -(-len(values) * percent // 100))
    return sorted(values)[int(rank) - 1]
