"""1,500 tasks of 30-120 s, as they are at any time in the middle: when which ends, and which starts in its place."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SHORTEST_SECONDS = 30.0
LONGEST_SECONDS = 120.0
MEAN_SECONDS = (SHORTEST_SECONDS + LONGEST_SECONDS) / 2
# A worker is told of a new task at once; claiming it is not what is measured.
START_AFTER_SECONDS = 0.3
NEXT = ""
"""In place of a task: whichever was submitted next."""


@dataclass(frozen=True, slots=True)
class Deed:
    """At `at` seconds from the beginning, what happens to the task."""

    at: float
    deed: Literal["end", "start"]
    task: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens, in order. A client whose task is over goes on with its successor, if it has one."""

    deeds: tuple[Deed, ...]
    successors: dict[str, str]


def requests_per_task(hold_seconds: float) -> float:
    """The fewest requests that wait for one task, on average: each holds `hold_seconds` or to the task's end.

    The mean of ceil(d / hold) over durations d between SHORTEST_SECONDS and LONGEST_SECONDS, all as likely: each k
    requests take up to k · hold, so it is the sum over k ≥ 0 of the share of tasks that last longer than k · hold.
    """
    span = LONGEST_SECONDS - SHORTEST_SECONDS
    holds = range(math.ceil(LONGEST_SECONDS / hold_seconds))
    return sum(min(1.0, (LONGEST_SECONDS - k * hold_seconds) / span) for k in holds)


def ends_within(clients: int, seconds: float) -> int:
    """How many of so many running tasks end: as many each second, whichever second it is, as long as `seconds` is at
    most SHORTEST_SECONDS, within which no successor ends."""
    return round(clients * seconds / MEAN_SECONDS)


def scenario(
    running: Sequence[str], waiting: Sequence[str], seconds: float, chance: random.Random
) -> Scenario:
    """End `len(waiting)` of the tasks that run, at random, within `seconds`, each followed by the next that waits."""
    ending = chance.sample(list(running), len(waiting))
    times = sorted(chance.uniform(0, seconds) for _ in waiting)
    deeds = [Deed(at, "end", task) for at, task in zip(times, ending, strict=True)]
    deeds += [
        Deed(at + START_AFTER_SECONDS, "start", task)
        for at, task in zip(times, waiting, strict=True)
    ]
    return Scenario(
        tuple(sorted(deeds, key=lambda deed: deed.at)), dict(zip(ending, waiting, strict=True))
    )
