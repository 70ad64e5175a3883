"""The registry's own measurements: exact while the newest tasks are all there are, from rollups beyond that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tasks_app.insights.durations import Durations
from tasks_app.insights.sketch import Sketch
from tasks_app.store import Bins, Call, Newest, newest_durations, sum_rollups

MOST_ROWS: Final = 10_000
"""So many tasks are looked at one by one, which takes some tens of milliseconds."""
USUAL_SECONDS: Final = 30 * 86_400.0
"""A month."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Which tasks to measure by: those that ended within so many seconds as one of `outcomes`. None: of every type, or
    every queue."""

    within_seconds: float = USUAL_SECONDS
    outcomes: tuple[str, ...] = ("SUCCESS",)
    task: str | None = None
    queue: str | None = None

    def calls(self) -> tuple[Call[dict[str, Newest]], Call[dict[str, Bins]], Call[dict[str, Bins]]]:
        """What `combined` wants the answers of."""
        within = self.within_seconds
        return (
            newest_durations(within, self.outcomes, MOST_ROWS, self.task, self.queue),
            sum_rollups(within, self.outcomes, self.task, self.queue),
            sum_rollups(within, self.outcomes, self.task, self.queue, waits=True),
        )


@dataclass(frozen=True, slots=True)
class Measurement:
    """How long the tasks of a type ran and had waited, since `first`. `rolled_up`: from rollups, to the last full hour."""

    ran: Durations
    waited: Durations
    first: datetime
    rolled_up: bool


def combined(
    newest: Mapping[str, Newest], ran: Mapping[str, Bins], waited: Mapping[str, Bins]
) -> dict[str, Measurement]:
    """For each type, whichever has measured more tasks: the newest, one by one, or the rollups."""
    found = {
        name: Measurement(Durations(each.ran), Durations(each.waited), each.first, False)
        for name, each in newest.items()
    }
    for name, bins in ran.items():
        rolled = Measurement(_durations(bins), _durations(waited[name]), bins.first, True)
        if name not in found or len(rolled.ran) > len(found[name].ran):
            found[name] = rolled
    return found


def _durations(bins: Bins) -> Durations:
    return Durations(sketch=Sketch(zip(bins.bins, bins.counts, strict=True)))
