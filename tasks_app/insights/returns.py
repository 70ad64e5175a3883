"""Whether it pays: the minutes that are saved against the days that it costs."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from functools import reduce
from typing import Final

WORTH_ABOVE: Final = 3
"""What is saved has to be more than so many times what it costs."""
USUAL_HOURS: Final = Decimal(8)
_MINUTES_PER_HOUR = 60
# Inputs have up to 13 digits before the point and MOST_DECIMALS behind it; a product of four keeps all of them.
_EXACT: Final = Context(prec=120)
MOST_DECIMALS: Final = 12
"""Of an input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Investment:
    """What is saved: minutes of each person at each run; and what it costs, in days of one person."""

    saved_minutes: Decimal
    runs_per_day: Decimal
    people: Decimal
    working_days: Decimal
    cost_days: Decimal
    hours_per_day: Decimal = USUAL_HOURS

    @property
    def saved_person_minutes(self) -> Decimal:
        """In all."""
        return _product(self.saved_minutes, self.runs_per_day, self.people, self.working_days)

    @property
    def cost_minutes(self) -> Decimal:
        """The cost, as minutes of a person."""
        return _product(self.cost_days, self.hours_per_day, _MINUTES_PER_HOUR)

    @property
    def threshold_minutes(self) -> Decimal:
        """What more has to be saved than."""
        return _product(self.cost_minutes, WORTH_ABOVE)

    @property
    def is_worth_it(self) -> bool:
        """More is saved than WORTH_ABOVE times the cost. By multiplication: what costs nothing is worth it."""
        return self.saved_person_minutes > self.threshold_minutes

    def lines(self) -> tuple[str, ...]:
        """The arithmetic, a step a line, and the verdict."""
        saved, cost = self.saved_person_minutes, self.cost_minutes
        threshold = self.threshold_minutes
        sign, verdict = (">", "worth it") if self.is_worth_it else ("≤", "not worth it")
        return (
            f"saved: {_n(self.saved_minutes)} min × {_n(self.runs_per_day)} runs a day × {_n(self.people)} people"
            f" × {_n(self.working_days)} working days = {_n(saved)} person-minutes",
            f"       {_n(saved)} ÷ {_MINUTES_PER_HOUR} = {_hours(saved)} h",
            f"cost: {_n(self.cost_days)} person-days × {_n(self.hours_per_day)} h = {_hours(cost)} h",
            f"threshold: {WORTH_ABOVE} × {_hours(cost)} h = {_hours(threshold)} h",
            f"verdict: {verdict}: {_hours(saved)} h {sign} {_hours(threshold)} h{self._ratio()}",
        )

    def _ratio(self) -> str:
        if not self.cost_minutes:
            return ""
        return f" ({_divided(self.saved_person_minutes, self.cost_minutes)} × the cost)"


def _hours(minutes: Decimal) -> str:
    return _divided(minutes, Decimal(_MINUTES_PER_HOUR))


def _divided(number: Decimal, by: Decimal) -> str:
    return _n(_EXACT.divide(number, by).quantize(Decimal("0.01"), context=_EXACT))


def _product(*factors: Decimal | int) -> Decimal:
    return reduce(_EXACT.multiply, factors, Decimal(1))


def _n(number: Decimal) -> str:
    """With thousands apart, without zeros at the end."""
    text = f"{number:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
