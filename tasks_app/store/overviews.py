"""The verbs behind the overview: what is so now, and how tasks ended over time. Each has a bound, whatever the table holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tasks_app.store.call import Call

MOST_LOOKED_AT: Final = 10_000
"""Rows that each figure comes from at most."""
SHARES: Final = (0.5, 0.95, 0.99)
_MOST_QUEUES = 100
_MOST_ROWS = 500


@dataclass(frozen=True, slots=True)
class Standing:
    """How many tasks of one type on one queue are due, wait for their time, run, and failed lately."""

    queue: str
    name: str
    due: int
    later: int
    running: int
    failed: int


@dataclass(frozen=True, slots=True)
class Minute:
    """The tasks that ended in a minute, which began at `at` (seconds since 1970).

    `ran` and `waited` are seconds at SHARES; empty where no task tells.
    """

    at: int
    succeeded: int
    failed: int
    cancelled: int
    ran: Sequence[float]
    waited: Sequence[float]


@dataclass(frozen=True, slots=True)
class Hour:
    """The same of an hour that was rolled up: how many tasks fell into which bin."""

    at: int
    succeeded: int
    failed: int
    cancelled: int
    ran: Sequence[tuple[int, int]]
    waited: Sequence[tuple[int, int]]


def standing(within_seconds: float) -> Call[list[Standing]]:
    """What is due, waits, runs, and has failed within so many seconds, by queue and type."""
    params = {
        "within": float(within_seconds),
        "most": MOST_LOOKED_AT,
        "most_queues": _MOST_QUEUES,
        "most_rows": _MOST_ROWS,
    }
    return Call("standing", params, lambda rows: [Standing(*row) for row in rows])


def ends_by_minute(within_seconds: float) -> Call[list[Minute]]:
    """How tasks ended within so many seconds, oldest minute first. Of too many, the newest."""
    return Call(
        "ends_by_minute",
        {"within": float(within_seconds), "most": 2 * MOST_LOOKED_AT, "shares": list(SHARES)},
        lambda rows: [_minute(*row) for row in rows],
    )


def ends_by_hour(hours: int) -> Call[list[Hour]]:
    """How tasks ended in the last `hours` that were rolled up, oldest first."""
    return Call("ends_by_hour", {"hours": hours}, lambda rows: [_hour(*row) for row in rows])


def _minute(
    at: int,
    succeeded: int,
    failed: int,
    cancelled: int,
    ran: list[float] | None,
    waited: list[float] | None,
) -> Minute:
    return Minute(at, succeeded, failed, cancelled, ran or (), waited or ())


def _hour(at: int, succeeded: int, failed: int, cancelled: int, *bins: list[int]) -> Hour:
    ran, ran_counts, waited, waited_counts = bins
    return Hour(
        at,
        succeeded,
        failed,
        cancelled,
        list(zip(ran, ran_counts, strict=True)),
        list(zip(waited, waited_counts, strict=True)),
    )
