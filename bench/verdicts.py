"""What became of an aim, and how a report shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Verdict:
    """`value` should be at most (≤) or at least (≥) `limit`; `where` says with what load it was measured."""

    title: str
    sign: Literal["≤", "≥"]
    limit: float
    where: str
    value: float
    is_ratio: bool = True

    @property
    def is_met(self) -> bool:
        """True when the value is within the limit."""
        return self.value <= self.limit if self.sign == "≤" else self.value >= self.limit

    def as_json(self) -> dict[str, Any]:
        """For a report."""
        return {
            "aim": self.title,
            "sign": self.sign,
            "limit": self.limit,
            "is_ratio": self.is_ratio,
            "where": self.where,
            "value": self.value,
            "is_met": self.is_met,
        }


def table(verdicts: Sequence[Verdict]) -> list[str]:
    """A Markdown table, or nothing."""
    if not verdicts:
        return []
    return ["| aim | with | measured | |", "|---|--:|--:|---|", *map(_row, verdicts)]


def _row(verdict: Verdict) -> str:
    limit = f"{verdict.sign} {verdict.limit:g}"
    value = f"{round(verdict.value, 2):g}"
    if verdict.is_ratio:
        limit, value = f"{limit}×", f"{verdict.value:.2f}×"
    outcome = "met" if verdict.is_met else "missed"
    return f"| {verdict.title} {limit} | {verdict.where} | {value} | {outcome} |"
