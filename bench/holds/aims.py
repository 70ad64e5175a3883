"""What asyncpoll means to reach, and whether a run did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.holds.figures import Figures
from bench.verdicts import Verdict

_LARGE = 8_000


@dataclass(frozen=True, slots=True)
class Aim:
    """`figure` of `subject` at most `limit`: as a multiple of the reference's, or absolutely. `held` None: at any number."""

    title: str
    subject: str
    figure: str
    limit: float
    is_ratio: bool = True
    held: int | None = None


_UVICORN, _DAPHNE, _GRANIAN = (f"asyncpoll ({name})" for name in ("uvicorn", "daphne", "granian"))
AIMS = (
    Aim("CPU per hold, uvicorn", _UVICORN, "cpu_us", 1.0),
    Aim("CPU per hold, daphne", _DAPHNE, "cpu_us", 1.3),
    Aim("memory per hold, uvicorn", _UVICORN, "memory_kb", 0.75),
    Aim("wake p50, uvicorn", _UVICORN, "wake_p50_ms", 2.0),
    Aim("storm, uvicorn", _UVICORN, "storm_s", 0.8, held=_LARGE),
    *(
        Aim(f"threads, {subject}", subject, "threads", 39, is_ratio=False, held=_LARGE)
        for subject in (_DAPHNE, _UVICORN, _GRANIAN)
    ),
)


def ratio(figures: Figures, reference: Figures | None, figure: str) -> float | None:
    """A figure as a multiple of the reference's; None where there is nothing to compare with."""
    if reference is None or not (base := getattr(reference, figure)):
        return None
    return float(getattr(figures, figure) / base)


def reference_for(figures: Figures, all_figures: Iterable[Figures], name: str) -> Figures | None:
    """The figures of the subject `name` with the same number held."""
    return next(
        (each for each in all_figures if each.subject == name and each.held == figures.held), None
    )


def judge(all_figures: Sequence[Figures], reference: str) -> list[Verdict]:
    """Every aim for which the run has a figure."""
    return [
        Verdict(aim.title, "≤", aim.limit, f"{figures.held:,} held", value, aim.is_ratio)
        for aim in AIMS
        for figures in all_figures
        if figures.subject == aim.subject
        and aim.held in (None, figures.held)
        and (value := _value(aim, figures, all_figures, reference)) is not None
    ]


def _value(
    aim: Aim, figures: Figures, all_figures: Sequence[Figures], reference: str
) -> float | None:
    if not aim.is_ratio:
        return float(getattr(figures, aim.figure))
    return ratio(figures, reference_for(figures, all_figures, reference), aim.figure)
