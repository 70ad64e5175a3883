"""The result of a run as Markdown and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench.fleet.aims import judge, size_text
from bench.fleet.figures import Crowded, Healed, Traffic
from bench.verdicts import Verdict, table


@dataclass(slots=True)
class Report:
    """Everything that was found out: medians of the rounds."""

    notes: list[str]
    crowded: list[Crowded] = field(default_factory=list)
    traffic: list[Traffic] = field(default_factory=list)
    healed: list[Healed] = field(default_factory=list)

    def verdicts(self) -> list[Verdict]:
        """What became of the aims."""
        return judge(self.crowded, self.traffic, self.healed)

    def markdown(self) -> str:
        """The tables and the notes that they need."""
        parts = [
            self._crowded(),
            self._traffic(),
            self._healed(),
            table(self.verdicts()),
            [f"- {note}" for note in self.notes],
        ]
        return "\n\n".join("\n".join(part) for part in parts if part)

    def as_json(self) -> dict[str, Any]:
        """The same."""
        return {
            "notes": self.notes,
            "crowded": [one.as_json() for one in self.crowded],
            "traffic": [one.as_json() for one in self.traffic],
            "healed": [one.as_json() for one in self.healed],
            "aims": [verdict.as_json() for verdict in self.verdicts()],
        }

    def _crowded(self) -> list[str]:
        if not self.crowded:
            return []
        return [
            "| processes | held | wake p50 / p99 | storm | drain |",
            "|---|--:|--:|--:|--:|",
            *(_crowded_row(one) for one in self.crowded),
        ]

    def _traffic(self) -> list[str]:
        if not self.traffic:
            return []
        return [
            "| processes | way | clients | requests/s | statements/min | latency p50 / p99 | errors | CPU | Redis/min |",
            "|---|---|--:|--:|--:|--:|--:|--:|--:|",
            *(_traffic_row(one) for one in self.traffic),
        ]

    def _healed(self) -> list[str]:
        if not self.healed:
            return []
        return [
            "| fault | lasted | well again after | longest wait | of it the machine's |",
            "|---|--:|--:|--:|--:|",
            *map(_healed_row, self.healed),
        ]


def _crowded_row(one: Crowded) -> str:
    failed = f", {one.failed} failed" if one.failed else ""
    cells = [
        size_text(one.size),
        f"{one.held:,}",
        f"{one.wake_p50_ms:.2f} / {one.wake_p99_ms:.2f} ms",
        f"{one.stormed:,} in {one.storm_s:.2f} s, commits {one.storm_commits_s:.2f} s{failed}",
        f"{one.drained:,} in {one.drain_s:.2f} s, {one.resets} resets, {one.not_drained} other",
    ]
    return f"| {' | '.join(cells)} |"


def _traffic_row(one: Traffic) -> str:
    errors = f"{one.errors} ({one.example})" if one.example else f"{one.errors}"
    cells = [
        size_text(one.size),
        one.way,
        f"{one.clients:,}",
        f"{one.requests_per_second:,.1f} ({one.renewals_per_second:,.1f} without news)",
        f"{one.statements_per_minute:,.0f} ({one.reads_per_minute:,.0f} reads for {one.changes_per_minute:,.0f} "
        f"changes and {one.first_polls_per_minute:,.0f} first polls)",
        f"{one.latency_p50_ms:,.1f} / {one.latency_p99_ms:,.1f} ms",
        errors,
        f"{one.cpu_percent:.0f} %",
        f"{one.commands_per_minute:,.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _healed_row(one: Healed) -> str:
    cells = [one.fault]
    seconds = (one.lasted_s, one.healed_s, one.worst_wait_s, one.machine_s)
    cells += [f"{value:.2f} s" for value in seconds]
    return f"| {' | '.join(cells)} |"
