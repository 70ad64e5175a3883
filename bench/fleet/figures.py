"""The figures of a fleet, and of several rounds of the same thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.figures import Measured, medians


@dataclass(frozen=True, slots=True)
class Size:
    """What is between the processes, "memory" or "redis", and how many there are."""

    layer: str
    processes: int


@dataclass(frozen=True, slots=True)
class Crowded(Measured):
    """What a fleet showed with many requests held. `failed` counts answers that were wrong or never came."""

    size: Size
    held: int
    wake_p50_ms: float
    wake_p99_ms: float
    stormed: int
    storm_s: float
    storm_commits_s: float
    """The part of it until the last commit returned."""
    drained: int
    drain_s: float
    resets: int
    not_drained: int
    """Answers to the drained other than 200 DRAINING, and those that never came; resets apart."""
    failed: int


@dataclass(frozen=True, slots=True)
class Traffic(Measured):
    """What one way of waiting for 1,500 tasks cost in the window, and what it gave."""

    size: Size
    way: str
    clients: int
    requests_per_second: float
    renewals_per_second: float
    """Those of them that follow an answer with no news."""
    statements_per_minute: float
    """Everything that the web processes sent to Postgres."""
    reads_per_minute: float
    """The statements among them that read tasks."""
    changes_per_minute: float
    first_polls_per_minute: float
    """Tasks that were asked for the first time."""
    commands_per_minute: float
    """Redis commands."""
    latency_p50_ms: float
    latency_p99_ms: float
    cpu_percent: float
    """CPU time of all web processes, in percent of one core."""
    errors: int
    """Answers other than 200, lost connections, and ends that a client was never told."""
    example: str = ""
    """One of them."""


@dataclass(frozen=True, slots=True)
class Healed(Measured):
    """What one fault did to three processes. Seconds; `limit_s` is the longest that anybody may wait, and
    `heal_limit_s` the longest that healing may take, where that is promised."""

    fault: str
    lasted_s: float
    healed_s: float
    worst_wait_s: float
    limit_s: float
    machine_s: float
    """What of a wait is to be put down to the machine: how much later than asked the measuring process itself ran."""
    heal_limit_s: float | None = None


def crowded_median(runs: Sequence[Crowded]) -> Crowded:
    """Medians over rounds of one size; whatever failed is summed up."""
    counts = ("resets", "not_drained", "failed")
    middle = medians(runs, but=("size", *counts))
    return replace(middle, **{name: sum(getattr(run, name) for run in runs) for name in counts})


def traffic_median(runs: Sequence[Traffic]) -> Traffic:
    """Medians over rounds of one way at one size; errors are summed up."""
    middle = medians(runs, but=("size", "way", "errors", "example"))
    return replace(middle, errors=sum(run.errors for run in runs))


def healed_median(runs: Sequence[Healed]) -> Healed:
    """Medians over rounds of one fault; but of the longest waits the longest."""
    middle = medians(runs, but=("fault", "limit_s", "heal_limit_s", "worst_wait_s", "machine_s"))
    worst = max(runs, key=lambda run: run.worst_wait_s - run.machine_s)
    return replace(middle, worst_wait_s=worst.worst_wait_s, machine_s=worst.machine_s)
