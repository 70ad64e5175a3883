"""Arithmetic over measured figures."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, fields, replace
from statistics import median
from typing import Any, TypeVar

F = TypeVar("F")
T = TypeVar("T")


class Measured:
    """Figures that a report shows: a frozen dataclass of them."""

    __slots__ = ()

    def as_json(self) -> dict[str, Any]:
        """Every field by its name."""
        return asdict(self)  # type: ignore[call-overload]


def in_turns(each: Sequence[T], rounds: int) -> Iterator[T]:
    """All of them, so many times, not always in the same order: each leaves the caches as it used them."""
    for turn in range(rounds):
        first = turn % len(each)
        yield from (*each[first:], *each[:first])


def medians(runs: Sequence[F], but: Collection[str]) -> F:
    """The first of `runs` (dataclasses), with the median over all in each field `but` these; whole numbers stay whole."""
    values = {
        each.name: _median([getattr(run, each.name) for run in runs])
        for each in fields(runs[0])  # type: ignore[arg-type]
        if each.name not in but
    }
    return replace(runs[0], **values)  # type: ignore[type-var]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of `values` that `percent` of them do not exceed (nearest rank); NaN where there are none."""
    if not values:
        return float("nan")
    rank = max(1, -(-len(values) * percent // 100))
    return sorted(values)[int(rank) - 1]


def _median(values: Sequence[float]) -> float:
    middle = median(values)
    return round(middle) if all(isinstance(value, int) for value in values) else middle
