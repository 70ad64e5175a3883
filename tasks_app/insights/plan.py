"""From percentiles to how a client should wait."""

from __future__ import annotations

from math import ceil
from typing import Final

from asyncpoll.planfile import FIRST_POLLS, TaskPlan
from tasks_app.insights.durations import Durations, needed

USUAL_HOLD_SECONDS: Final = 25.0
"""Below the 29 to 30 s after which gateways cut a request."""
_PERCENTS: Final = (50, 95, 99)
_TIMEOUT_FACTOR = 1.5
_TIMEOUT_STEP_SECONDS = 10
_CI_FACTOR = 2.0
_CI_LEAST_SECONDS = 30.0
# Of a hold, up to a sixteenth is taken off so that renewals spread out; see tasks_app.hold.window.
_WHOLE_HOLD = 16 / 15
_SHORTEST_INTERVAL_SECONDS = 0.001


def make_plan(
    task: str, durations: Durations, most_hold_seconds: float = USUAL_HOLD_SECONDS
) -> TaskPlan:
    """How to wait for tasks of the type `task`, which took as long as `durations`.

    - Give up after 1.5 × P99, rounded up to 10 s.
    - Poll five times at intervals of P50 / 5, then after twice the interval before each time, up to 5 s.
    - Ask for a hold within which 99 of 100 tasks end, in whole seconds, up to `most_hold_seconds`.
    - Let the next run in CI take 2 × P95, at least 30 s.

    What a percentile of too few samples would decide is None, and `notes` says so.
    """
    p50, p95, p99 = (_shown(durations.percentile(percent)) for percent in _PERCENTS)
    return TaskPlan(
        task=task,
        samples=len(durations),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        timeout_seconds=None if p99 is None else _timeout(p99),
        first_interval_seconds=None if p50 is None else _interval(p50 / FIRST_POLLS),
        hold_seconds=None if p99 is None else _hold(p99, most_hold_seconds),
        ci_timeout_seconds=None if p95 is None else ci_timeout(p95),
        notes=_notes(durations),
    )


def interval_at(plan: TaskPlan, elapsed_seconds: float) -> float | None:
    """The interval that a client who polls as `plan` says is at, so long after it began; None: the plan has none."""
    waits = plan.intervals()
    if waits is None:
        return None
    interval, polls = 0.0, 0
    while elapsed_seconds >= 0:
        interval, polls = next(waits), polls + 1
        if polls > plan.first_polls and interval == plan.max_interval_seconds:
            break
        elapsed_seconds -= interval
    return interval


def _shown(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds, 3)


def _timeout(p99_ms: float) -> float:
    seconds = _TIMEOUT_FACTOR * p99_ms / 1000
    return float(max(1, ceil(seconds / _TIMEOUT_STEP_SECONDS)) * _TIMEOUT_STEP_SECONDS)


def _interval(milliseconds: float) -> float:
    return max(round(milliseconds / 1000, 6), _SHORTEST_INTERVAL_SECONDS)


def _hold(p99_ms: float, most_seconds: float) -> float:
    return min(float(max(1, ceil(_WHOLE_HOLD * p99_ms / 1000))), most_seconds)


def ci_timeout(p95_ms: float) -> float:
    """Seconds that the next run in CI may take."""
    return max(round(_CI_FACTOR * p95_ms / 1000, 3), _CI_LEAST_SECONDS)


def _notes(durations: Durations) -> tuple[str, ...]:
    count = len(durations)
    lacking = [percent for percent in _PERCENTS if count < needed(percent)]
    notes = [_too_few(lacking, count)] if lacking else []
    if durations.relative_error and len(lacking) < len(_PERCENTS):
        notes.append(f"Percentiles are within {durations.relative_error:.0%} of what was measured.")
    return tuple(notes)


def _too_few(lacking: list[int], count: int) -> str:
    """One note for all of them: they lack the same samples."""
    first, *others = lacking
    wanted = "".join(f", P{percent} {needed(percent)}" for percent in others)
    unknown = ", ".join(_UNKNOWN[percent] for percent in lacking)
    return f"P{first} needs {needed(first)} samples{wanted} and there are {count}: {unknown} are not known yet."


_UNKNOWN: Final = {
    50: "the interval between polls",
    95: "what a run in CI may take",
    99: "when to give up and the hold to ask for",
}
