"""The result of a run as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.holds.aims import judge, ratio, reference_for
from bench.holds.figures import Figures
from bench.verdicts import Verdict, table


@dataclass(slots=True)
class Report:
    """Everything that was found out. `reference` is the subject that ratios refer to."""

    reference: str
    notes: list[str]
    runs: list[Figures] = field(default_factory=list)
    medians: list[Figures] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def verdicts(self) -> list[Verdict]:
        """What became of the aims."""
        return judge(self.medians, self.reference)

    def markdown(self) -> str:
        """Two tables and the notes that they need."""
        return "\n".join([*self._table(), "", *table(self.verdicts()), "", *self._notes()])

    def as_json(self) -> dict[str, Any]:
        """The same, with every single run."""
        return {
            "reference": self.reference,
            "notes": self.notes,
            "left_out": self.left_out,
            "medians": [figures.as_json() for figures in self.medians],
            "runs": [figures.as_json() for figures in self.runs],
            "aims": [verdict.as_json() for verdict in self.verdicts()],
        }

    def _table(self) -> list[str]:
        return [
            "| server | held | CPU per hold | memory each | threads | wake p50 / p95 / p99 | storm |",
            "|---|--:|--:|--:|--:|--:|--:|",
            *(self._row(figures) for figures in self.medians),
        ]

    def _row(self, figures: Figures) -> str:
        reference = reference_for(figures, self.medians, self.reference)

        def times(figure: str) -> str:
            value = ratio(figures, reference, figure)
            return "" if value is None or figures is reference else f" ({value:.2f}×)"

        failed = f", {figures.failed} failed" if figures.failed else ""
        cells = [
            figures.subject,
            f"{figures.held:,}",
            f"{figures.cpu_us:.0f} µs{times('cpu_us')}",
            f"{figures.memory_kb:.1f} KB{times('memory_kb')}",
            f"{figures.threads:,}",
            f"{figures.wake_p50_ms:.2f}{times('wake_p50_ms')} / {figures.wake_p95_ms:.2f} / "
            f"{figures.wake_p99_ms:.2f} ms",
            f"{figures.storm_s:.2f} s{times('storm_s')}, commits {figures.storm_commits_s:.2f} s{failed}",
        ]
        return f"| {' | '.join(cells)} |"

    def _notes(self) -> Sequence[str]:
        return [f"- {note}" for note in (*self.notes, *self.left_out)]
