"""What asyncpoll means to reach, and whether a run did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.verdicts import Verdict
from bench.worker.figures import Cancels, Cost, Figures

ASYNCPOLL = "asyncpoll"
GROWTH_LIMIT = 1.2
CANCEL_LIMIT_MS = 100.0


@dataclass(frozen=True, slots=True)
class Aim:
    """At least `limit` times the rate of `subject`, at every batch that both were measured with."""

    subject: str
    limit: float


AIMS = (Aim("pgqueuer", 1.0), Aim("pgqueuer-5", 1.0), Aim("procrastinate", 20.0))


def ratio(figures: Figures, all_figures: Sequence[Figures]) -> float | None:
    """What asyncpoll completed at the same batch, as a multiple of what this one ran; None without a comparison."""
    ours = find(all_figures, ASYNCPOLL, figures.batch)
    if ours is None or figures is ours or not figures.ran_per_second:
        return None
    return ours.completed_per_second / figures.ran_per_second


def find(all_figures: Sequence[Figures], subject: str, batch: int) -> Figures | None:
    """The figures of `subject` at `batch`."""
    return next((f for f in all_figures if (f.subject, f.batch) == (subject, batch)), None)


def judge(
    all_figures: Sequence[Figures], costs: Sequence[Cost], cancels: Cancels | None = None
) -> list[Verdict]:
    """Every aim for which the run has figures."""
    rates = [
        Verdict(f"{aim.subject}'s rate", "≥", aim.limit, f"batch {figures.batch}", value)
        for aim in AIMS
        for figures in all_figures
        if figures.subject == aim.subject and (value := ratio(figures, all_figures)) is not None
    ]
    return [*rates, *_judge_growth(costs), *_judge_cancels(cancels)]


def _judge_cancels(cancels: Cancels | None) -> list[Verdict]:
    if cancels is None:
        return []
    where = f"{cancels.count:,} running tasks"
    return [
        Verdict(
            "cancel seen, p99 in ms", "≤", CANCEL_LIMIT_MS, where, cancels.p99_ms, is_ratio=False
        )
    ]


def _judge_growth(costs: Sequence[Cost]) -> list[Verdict]:
    return [
        Verdict(
            f"{verb} beside the fewest finished tasks",
            "≤",
            GROWTH_LIMIT,
            f"{cost.finished:,} finished",
            getattr(cost, figure) / getattr(costs[0], figure),
        )
        for cost in costs[1:]
        for verb, figure in (("claim", "claim_us"), ("commit", "commit_us"))
    ]
