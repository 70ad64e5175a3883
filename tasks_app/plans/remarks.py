"""What has to be said of measurements beside their percentiles."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC

from tasks_app.insights.report import milliseconds
from tasks_app.plans.registry import Measurement

_PERCENTS = (50, 95, 99)


def remarks(measured: Mapping[str, Measurement]) -> tuple[str, ...]:
    """A sentence for each type: since when, by what, and how long its tasks had waited before."""
    return tuple(f"{name}: {_said(each)}" for name, each in sorted(measured.items()))


def _said(each: Measurement) -> str:
    by = "by the hour" if each.rolled_up else "one by one"
    since = each.first.astimezone(UTC)
    return f"measured {by} since {since:%Y-%m-%d %H:%M} UTC; {_waited(each)}."


def _waited(each: Measurement) -> str:
    known = {percent: each.waited.percentile(percent) for percent in _PERCENTS}
    waits = [f"P{percent} {milliseconds(ms)}" for percent, ms in known.items() if ms is not None]
    if not waits:
        return "too few to say how long they had waited in the queue"
    return f"had waited in its queue: {', '.join(waits)}"
