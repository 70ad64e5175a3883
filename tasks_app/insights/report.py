"""What was found out, as a table for people, as JSON, or as the polling file that clients read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

from asyncpoll.planfile import PlanFile, TaskPlan, render
from tasks_app.insights.decision import Decision
from tasks_app.insights.returns import Investment

_HEADINGS: Final = (
    "task",
    "samples",
    "P50",
    "P95",
    "P99",
    "time-out",
    "first 5 polls",
    "hold",
    "next CI run",
)
_UNKNOWN: Final = "–"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about `subject`: a task type, or what was asked. None: `reason` says why there is none."""

    subject: str
    decision: Decision | None
    reason: str = ""

    def line(self) -> str:
        """In a sentence."""
        if self.decision is None:
            return f"{self.subject}: {self.reason}"
        p95 = self.decision.p95_seconds
        known = "P95 not known" if p95 is None else f"P95 {p95:g} s"
        inputs = f"{self.decision.share_percent:g} % asynchronous, {known}"
        return f"{self.subject}: {self.decision.answer} ({inputs}; {self.decision.why})"

    def document(self) -> dict[str, Any]:
        """For JSON."""
        if self.decision is None:
            return {"for": self.subject, "answer": None, "reason": self.reason}
        return {
            "for": self.subject,
            "answer": self.decision.answer,
            "share_percent": self.decision.share_percent,
            "p95_seconds": self.decision.p95_seconds,
            "rule": self.decision.rule.asks,
            "nearest": self.decision.nearest,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Plans, decisions, whether it pays, and what has to be said about the measurements."""

    made_at: datetime
    plans: tuple[TaskPlan, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    investment: Investment | None = None
    remarks: tuple[str, ...] = ()

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The plans in words, below _HEADINGS."""
        return [_row(plan) for plan in self.plans]

    @property
    def notes(self) -> list[str]:
        """What has to be said about single plans."""
        return [f"{plan.task}: {note}" for plan in self.plans for note in plan.notes]

    def table(self) -> str:
        """For people."""
        parts = []
        if self.plans:
            parts.append(_aligned([_HEADINGS, *self.rows]))
        notes = self.notes
        decisions = [verdict.line() for verdict in self.verdicts]
        lines = self.investment.lines() if self.investment else ()
        parts += ["\n".join(each) for each in (notes, decisions, lines, self.remarks) if each]
        return "\n\n".join(parts) + "\n"

    def document(self) -> str:
        """As JSON."""
        found: dict[str, Any] = {
            "made_at": self.made_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "plans": [asdict(plan) for plan in self.plans],
            "decisions": [verdict.document() for verdict in self.verdicts],
            "return": _return(self.investment) if self.investment else None,
            "remarks": list(self.remarks),
        }
        return json.dumps(found, indent=2, ensure_ascii=False) + "\n"

    def polling_file(self) -> str:
        """As `asyncpoll.planfile` reads it."""
        return render(PlanFile(self.made_at, self.plans))


def _return(investment: Investment) -> Mapping[str, Any]:
    return {
        "saved_hours": round(float(investment.saved_person_minutes) / 60, 2),
        "cost_hours": round(float(investment.cost_minutes) / 60, 2),
        "worth_it": investment.is_worth_it,
        "arithmetic": list(investment.lines()),
    }


def _row(plan: TaskPlan) -> tuple[str, ...]:
    return (
        plan.task,
        f"{plan.samples:,}",
        *(milliseconds(each) for each in (plan.p50_ms, plan.p95_ms, plan.p99_ms)),
        _seconds(plan.timeout_seconds),
        "every " + _seconds(plan.first_interval_seconds)
        if plan.first_interval_seconds
        else _UNKNOWN,
        _seconds(plan.hold_seconds),
        _seconds(plan.ci_timeout_seconds),
    )


def milliseconds(value: float | None) -> str:
    """In words: 17.1 ms, 1.8 s."""
    if value is None:
        return _UNKNOWN
    return _seconds(value / 1000) if value >= 1000 else f"{value:.4g} ms"


def _seconds(value: float | None) -> str:
    if value is None:
        return _UNKNOWN
    return f"{value:,.1f}".removesuffix(".0") + " s" if value >= 10 else f"{value:.3g} s"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """The first column to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        ).rstrip()
        for row in rows
    )
