"""The verbs of measured durations: rolling finished tasks up by the hour, and reading what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tasks_app.store.call import Call, Rows


@dataclass(frozen=True, slots=True)
class Rolled:
    """A span that was rolled up: from when, and of how many tasks, or from how many rollups of hours."""

    started_at: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Bins:
    """How many tasks since `first` fall into each bin."""

    bins: Sequence[int]
    counts: Sequence[int]
    first: datetime


@dataclass(frozen=True, slots=True)
class Newest:
    """Milliseconds of the tasks since `first`, in no order; `waited` is the time from due to start."""

    ran: Sequence[float]
    waited: Sequence[float]
    first: datetime


def roll_up(
    most_hours: int, looks: Sequence[float], gamma: float, shortest_ms: float
) -> Call[Rolled | None]:
    """Roll up the latest hour that is due among the last `most_hours`; None: there is none, or somebody else is at it.

    An hour is due each time that one of `looks`, in seconds, has passed since its end. `gamma` is the base of the bins.
    """
    return Call(
        "roll_up",
        {
            "most_hours": most_hours,
            "looks": [float(look) for look in looks],
            "gamma": gamma,
            "shortest": shortest_ms,
        },
        _rolled,
    )


def fold_day(after_days: int, most_hours: int) -> Call[Rolled | None]:
    """Make one rollup of the hours of the oldest day that ended so many days ago; None: there is none.

    `most_hours` as in `roll_up`: so long it has to be remembered which hours were rolled up.
    """
    return Call("fold_day", {"after_days": after_days, "most_hours": most_hours}, _rolled)


def sum_rollups(
    within_seconds: float,
    outcomes: Sequence[str],
    task: str | None = None,
    queue: str | None = None,
    *,
    waits: bool = False,
) -> Call[dict[str, Bins]]:
    """What hours and days since then say, by type: how long tasks ran or, `waits`, had waited."""
    return Call(
        "sum_rollups",
        {
            "within": within_seconds,
            "outcomes": list(outcomes),
            "task": task,
            "queue": queue,
            "waits": waits,
        },
        lambda rows: {row[0]: Bins(row[1], row[2], row[3]) for row in rows},
        # Planned for these very values: guessing at a queue, the planner expects a row, and sorts a thousand times as many.
        prepare=False,
    )


def newest_durations(
    within_seconds: float,
    outcomes: Sequence[str],
    limit: int,
    task: str | None = None,
    queue: str | None = None,
) -> Call[dict[str, Newest]]:
    """What the `limit` tasks that ended last say, of those within so many seconds, by type."""
    return Call(
        "newest_durations",
        {
            "within": within_seconds,
            "outcomes": list(outcomes),
            "limit": limit,
            "task": task,
            "queue": queue,
        },
        lambda rows: {row[0]: Newest(row[1], row[2], row[3]) for row in rows},
    )


def _rolled(rows: Rows) -> Any:
    return Rolled(rows[0][0], rows[0][1]) if rows else None
