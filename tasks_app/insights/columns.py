"""Where a row of some system's measurements says what: the names of its columns, and their unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from typing import Any, Final

UNITS: Final[Mapping[str, float]] = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0}
"""Milliseconds in each."""
_SUFFIXES: Final = {
    "_us": "us",
    "_ms": "ms",
    "_millis": "ms",
    "_s": "s",
    "_sec": "s",
    "_secs": "s",
    "_seconds": "s",
    "_min": "min",
    "_minutes": "min",
}
_LONGEST_MS: Final = 1e11
_LONGEST_NAME: Final = 200
_SHOWN_CHARACTERS: Final = 40


class BadRow(ValueError):
    """A row is no measurement. Says which value breaks which rule."""


class OtherOutcome(Exception):
    """A row is a measurement, of an outcome that was not asked for."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns to read. `unit` None follows from the name of `duration`; `only_task` stands for all rows.

    `outcome` None takes rows of any; otherwise those whose outcome is one of `outcomes`.
    """

    task: str = "task"
    duration: str = "duration_ms"
    unit: str | None = None
    only_task: str | None = None
    outcome: str | None = None
    outcomes: tuple[str, ...] = ("SUCCESS",)

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names of the columns that have to be there."""
        return (self.duration,) if self.only_task is not None else (self.duration, self.task)

    def are_in(self, names: list[str]) -> bool:
        """True when these names of columns have all that has to be there."""
        return set(self.wanted) <= set(names)

    def read(self, row: Mapping[str, Any]) -> tuple[str, float]:
        """The task type and the milliseconds of a row. Raises BadRow and OtherOutcome."""
        if self.outcome is not None and _found(row, self.outcome) not in self.outcomes:
            raise OtherOutcome
        return self._name(row), self._milliseconds(row)

    def _name(self, row: Mapping[str, Any]) -> str:
        if self.only_task is not None:
            return self.only_task
        name = _found(row, self.task)
        # A name is printed as it is, and is not to steer a terminal.
        is_name = isinstance(name, str) and name.isprintable()
        if not is_name or not 1 <= len(name) <= _LONGEST_NAME:
            raise BadRow(
                f"{self.task} is {_shown(name)}; it has to be a name of 1 to {_LONGEST_NAME} printable characters"
            )
        return name

    def _milliseconds(self, row: Mapping[str, Any]) -> float:
        value = _found(row, self.duration)
        try:
            number = float(value) if not isinstance(value, bool) else -1.0
        except (TypeError, ValueError, OverflowError):
            number = -1.0
        milliseconds = number * UNITS[self.unit or unit_of(self.duration)]
        if not isfinite(milliseconds) or not 0 <= milliseconds <= _LONGEST_MS:
            raise BadRow(f"{self.duration} is {_shown(value)}; it has to be a number from 0")
        return milliseconds


@cache
def unit_of(name: str) -> str:
    """The unit that the name of a column ends in; milliseconds where it does not say."""
    return next((unit for suffix, unit in _SUFFIXES.items() if name.endswith(suffix)), "ms")


def _found(row: Mapping[str, Any], name: str) -> Any:
    if row.get(name) is None:
        raise BadRow(f"{name} is missing")
    return row[name]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 3]}..."
