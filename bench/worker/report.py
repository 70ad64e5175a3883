"""The result of a run as Markdown and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.verdicts import Verdict, table
from bench.worker.aims import judge, ratio
from bench.worker.figures import Cancels, Cost, Figures


@dataclass(slots=True)
class Report:
    """Everything that was found out."""

    notes: list[str]
    runs: list[Figures] = field(default_factory=list)
    medians: list[Figures] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    cancels: Cancels | None = None

    def verdicts(self) -> list[Verdict]:
        """What became of the aims."""
        return judge(self.medians, self.costs, self.cancels)

    def markdown(self) -> str:
        """The tables and the notes that they need."""
        parts = [
            *(self._rates(), self._growth(), self._cancels()),
            *(table(self.verdicts()), self._notes()),
        ]
        return "\n\n".join("\n".join(part) for part in parts if part)

    def as_json(self) -> dict[str, Any]:
        """The same, with every single run."""
        return {
            "notes": self.notes,
            "medians": [figures.as_json() for figures in self.medians],
            "runs": [figures.as_json() for figures in self.runs],
            "growth": [cost.as_json() for cost in self.costs],
            "cancels": self.cancels and self.cancels.as_json(),
            "aims": [verdict.as_json() for verdict in self.verdicts()],
        }

    def _rates(self) -> list[str]:
        if not self.medians:
            return []
        return [
            "| queue | batch | enqueue | run | complete | asyncpoll's | CPU | pick-up p50 / p99 |",
            "|---|--:|--:|--:|--:|--:|--:|--:|",
            *(self._rate(figures) for figures in self.medians),
        ]

    def _rate(self, figures: Figures) -> str:
        times = ratio(figures, self.medians)
        cells = [
            figures.subject,
            f"{figures.batch:,}",
            f"{figures.enqueued_per_second:,.0f}/s",
            f"{figures.ran_per_second:,.0f}/s",
            f"{figures.completed_per_second:,.0f}/s",
            "" if times is None else f"{times:.2f}×",
            f"{figures.cpu_us:,.0f} µs",
            f"{figures.pickup_p50_ms:.1f} / {figures.pickup_p99_ms:.1f} ms",
        ]
        return f"| {' | '.join(cells)} |"

    def _growth(self) -> list[str]:
        if not self.costs:
            return []
        return [
            "| finished tasks | claim | of it Postgres' CPU | commit | of it Postgres' CPU |",
            "|--:|--:|--:|--:|--:|",
            *(self._cost(cost) for cost in self.costs),
        ]

    def _cost(self, cost: Cost) -> str:
        cells = [f"{cost.finished:,}"]
        for figure in ("claim_us", "claim_cpu_us", "commit_us", "commit_cpu_us"):
            value, least = getattr(cost, figure), getattr(self.costs[0], figure)
            times = "" if cost is self.costs[0] else f" ({value / least:.2f}×)"
            cells.append(f"{value:.1f} µs{times}")
        return f"| {' | '.join(cells)} |"

    def _cancels(self) -> list[str]:
        if self.cancels is None:
            return []
        return [
            "| running tasks cancelled | seen by the task p50 / p99 |",
            "|--:|--:|",
            f"| {self.cancels.count:,} | {self.cancels.p50_ms:.1f} / {self.cancels.p99_ms:.1f} ms |",
        ]

    def _notes(self) -> list[str]:
        return [f"- {note}" for note in self.notes]
