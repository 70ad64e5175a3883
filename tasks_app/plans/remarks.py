"""What has to be said of measurements beside their percentiles."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC

from tasks_app.insights.report import milliseconds
from tasks_app.plans.registry import Measurement

_PERCENTS = (50, 95, 99)


def remarks(measured: Mapping[str, Measurement]) -> tuple[str, ...]:
    """A sentence for each type: since when, by what, and how long its tasks had waited before."""
    if not measured:
        return ("No task that ended in that time was measured; run some, or name a FILE.",)
    return tuple(f"{name}: {_said(each)}" for name, each in sorted(measured.items()))


def _said(each: Measurement) -> str:
    by = "by the hour" if each.rolled_up else "one by one"
    since = each.first.astimezone(UTC)
    waits = ", ".join(_wait(each, percent) for percent in _PERCENTS)
    return f"measured {by} since {since:%Y-%m-%d %H:%M} UTC; had waited in its queue: {waits}."


def _wait(each: Measurement, percent: int) -> str:
    waited = each.waited.percentile(percent)
    return f"P{percent} not known" if waited is None else f"P{percent} {milliseconds(waited)}"
