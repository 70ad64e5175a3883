"""What the next run may take, from what this one took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asyncpoll.planfile import TaskPlan
from tasks_app.insights.durations import Durations, needed
from tasks_app.insights.plan import ci_timeout, make_plan


def next_plan(task: str, durations_ms: Sequence[float], former: TaskPlan | None) -> TaskPlan:
    """The plan for `task` after a run in which it took `durations_ms`, at least one.

    With too few of them for a P95 a `former` plan that has one stays, and the slowest of them may only lengthen it.
    """
    measured = make_plan(task, Durations(durations_ms))
    if measured.p95_ms is not None:
        return _allowing(measured, ci_timeout(measured.p95_ms))
    slowest = ci_timeout(max(durations_ms))
    if former is None or former.p95_ms is None:
        note = f"The slowest stands for the P95, which needs {needed(95)} in one run."
        return _allowing(measured, slowest, note)
    known = ci_timeout(former.p95_ms)
    note = (
        f"Kept from an earlier run: the last one had {len(durations_ms)}, a P95 needs {needed(95)}."
    )
    return _allowing(former, max(known, slowest), note)


def _allowing(plan: TaskPlan, seconds: float, *notes: str) -> TaskPlan:
    """In a test suite nothing waits longer than a run in CI may take."""
    return replace(plan, timeout_seconds=seconds, ci_timeout_seconds=seconds, notes=notes)
