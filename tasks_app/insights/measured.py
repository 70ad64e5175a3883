"""What was read: durations by task type, and what could not be used."""

from __future__ import annotations

from typing import Final

from tasks_app.insights.columns import BadRow
from tasks_app.insights.durations import Durations

MOST_TYPES: Final = 1_000
MOST_NAMED: Final = 10


class Measured:
    """Durations by task type. `others` counts lines that are no measurements and need not be, `of_other_outcome` those
    of tasks that ended otherwise, `bad` lines that should have been measurements; the first of these are `named`."""

    def __init__(self) -> None:
        self.by_task: dict[str, Durations] = {}
        self.others = 0
        self.of_other_outcome = 0
        self.bad = 0
        self.named: list[str] = []

    @property
    def count(self) -> int:
        """All measurements."""
        return sum(map(len, self.by_task.values()))

    def add(self, task: str, milliseconds: float) -> None:
        """One more. Raises BadRow for a task type beyond MOST_TYPES."""
        durations = self.by_task.get(task)
        if durations is None:
            if len(self.by_task) >= MOST_TYPES:
                raise BadRow(
                    f"it is of yet another task type than the first {MOST_TYPES:,}; is its column the right one?"
                )
            durations = self.by_task[task] = Durations()
        durations.add(milliseconds)

    def refuse(self, source: str, number: int, why: str) -> None:
        """A line that is no measurement."""
        self.bad += 1
        if len(self.named) < MOST_NAMED:
            self.named.append(f"{source} line {number}: {why}")

    def remarks(self) -> tuple[str, ...]:
        """What could not be used, in sentences."""
        said = []
        if self.bad:
            left = self.bad - len(self.named)
            more = f"\n  and {left:,} more" if left else ""
            said.append(f"Not used, {self.bad:,} bad:\n  " + "\n  ".join(self.named) + more)
        if self.of_other_outcome:
            said.append(f"Not used, {self.of_other_outcome:,} of another outcome.")
        return tuple(said)
