"""What was measured while finished tasks were deleted, and what of it is an aim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures import Measured, percentile
from bench.verdicts import Verdict

LONGEST_LOCK_MS = 250.0
MEDIAN_LIMIT = 1.5
_PERCENTS = (50, 95, 99, 100)


@dataclass(frozen=True, slots=True)
class Spread:
    """Milliseconds that `count` of something took: half of them at most `p50`, all of them at most `longest`."""

    count: int
    p50: float
    p95: float
    p99: float
    longest: float


def spread(milliseconds: Sequence[float]) -> Spread:
    """By nearest rank."""
    return Spread(len(milliseconds), *(percentile(milliseconds, percent) for percent in _PERCENTS))


@dataclass(frozen=True, slots=True)
class Sides:
    """The same while somebody pruned, and while nobody did."""

    beside: Spread
    alone: Spread

    def ratio(self, figure: str) -> float:
        """Of one figure: what it was beside the pruning, as a multiple of what it was without."""
        return float(getattr(self.beside, figure) / getattr(self.alone, figure))


@dataclass(frozen=True, slots=True)
class Figures(Measured):
    """`tasks` with `history` rows were deleted in `seconds` of work, in `batches`; no other statement of the pruning
    took longer than `longest_else` milliseconds. What others did meanwhile: `enqueue`, and have tasks `done`."""

    tasks: int
    history: int
    seconds: float
    batches: Spread
    longest_else: float
    enqueue: Sides
    done: Sides


def judge(figures: Figures) -> list[Verdict]:
    """What became of the aims."""
    where = f"{figures.tasks:,} deleted"
    longest = figures.batches.longest
    return [
        Verdict("longest lock, ms", "≤", LONGEST_LOCK_MS, where, longest, is_ratio=False),
        *(
            Verdict(f"others' {name}, median", "≤", MEDIAN_LIMIT, where, sides.ratio("p50"))
            for name, sides in (("enqueue", figures.enqueue), ("done", figures.done))
        ),
    ]


def markdown(figures: Figures) -> list[str]:
    """A table: what the pruning took, and what others took."""
    return [
        f"{figures.tasks:,} tasks and {figures.history:,} rows of history deleted in {figures.seconds:.1f} s of work, "
        f"{figures.batches.count:,} batches; no other statement took longer than {figures.longest_else:.0f} ms.",
        "",
        "| ms | count | p50 | p95 | p99 | longest |",
        "|---|--:|--:|--:|--:|--:|",
        _row("batch", figures.batches),
        *_rows("enqueue", figures.enqueue),
        *_rows("done", figures.done),
    ]


def _rows(name: str, sides: Sides) -> list[str]:
    return [
        _row(f"{name}, nobody prunes", sides.alone),
        _row(f"{name}, beside the pruning", sides.beside, sides),
    ]


def _row(name: str, times: Spread, sides: Sides | None = None) -> str:
    cells = [name, f"{times.count:,}"]
    for figure in ("p50", "p95", "p99", "longest"):
        ratio = "" if sides is None else f" ({sides.ratio(figure):.2f}×)"
        cells.append(f"{getattr(times, figure):.1f}{ratio}")
    return f"| {' | '.join(cells)} |"
