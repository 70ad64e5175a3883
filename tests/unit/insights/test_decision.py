"""The decision table, and whether it pays."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from tasks_app.insights.decision import decide
from tasks_app.insights.returns import Investment


@pytest.mark.parametrize(
    ("share", "p95", "answer", "nearest"),
    [
        (5, 10, "polling is enough", False),
        (9.9, 14.9, "polling is enough", False),
        (10, 20.1, "add ?wait=true", False),
        (20, 30, "add ?wait=true", False),
        (30, 60, "add ?wait=true", False),
        (30.1, 1, "event-driven", False),
        (1, 60.1, "event-driven", False),
        (20, 61, "event-driven", False),
        (5, 15, "polling is enough", True),
        (5, 18, "polling is enough", True),
        (20, 20, "add ?wait=true", True),
        (5, 60, "event-driven", True),
        (9, 40, "add ?wait=true", True),
        (1, 58, "event-driven", True),
        (12, 10, "polling is enough", True),
        (20, 10, "add ?wait=true", True),
        (29, 10, "event-driven", True),
        (10, 15, "polling is enough", True),
        (30, 20, "add ?wait=true", True),
    ],
)
def test_the_table_decides_and_what_it_leaves_open_is_marked(
    share: float, p95: float, answer: str, nearest: bool
):
    """Of rules that both fire, the one that does more; of two that are as near, the one that does less."""
    found = decide(share, p95)
    assert found is not None
    assert (found.answer, found.nearest) == (answer, nearest)
    assert ("nearest rule" in found.why) is nearest
    assert (found.share_percent, found.p95_seconds) == (share, p95)


def test_a_share_that_decides_alone_needs_no_p95():
    """And one that does not is not guessed."""
    found = decide(31, None)
    assert found is not None
    assert (found.answer, found.p95_seconds) == ("event-driven", None)
    assert decide(30, None) is None


def investment(**changed: Any) -> Investment:
    """The example: 8 minutes, 6 runs a day, 2 people, 22 days, against 2 days' work."""
    facts = {"saved_minutes": 8, "runs_per_day": 6, "people": 2, "working_days": 22, "cost_days": 2}
    return Investment(**{name: Decimal(str(value)) for name, value in (facts | changed).items()})


def test_the_arithmetic_is_shown_line_by_line():
    """2,112 person-minutes are 35.2 h, which are not more than 3 × 16 h."""
    assert investment().lines() == (
        "saved: 8 min × 6 runs a day × 2 people × 22 working days = 2,112 person-minutes",
        "       2,112 ÷ 60 = 35.2 h",
        "cost: 2 person-days × 8 h = 16 h",
        "threshold: 3 × 16 h = 48 h",
        "verdict: not worth it: 35.2 h ≤ 48 h (2.2 × the cost)",
    )


def test_exactly_three_times_the_cost_is_not_above_it():
    """Computed without rounding."""
    facts = {"saved_minutes": "0.1", "runs_per_day": 3, "people": 3, "working_days": 160}
    assert not investment(**facts, cost_days="0.1").is_worth_it
    assert investment(**facts, cost_days="0.0999").is_worth_it
    assert investment(cost_days=2, hours_per_day="5.8").is_worth_it
    assert investment(cost_days=0).lines()[-1] == "verdict: worth it: 35.2 h > 0 h"


def test_the_largest_and_the_smallest_inputs_are_computed_to_the_last_digit():
    """Whatever an option takes."""
    largest, least = Decimal("1e12"), Decimal("1e-12")
    names = ("saved_minutes", "runs_per_day", "people", "working_days", "cost_days")
    huge, tiny = (investment(**dict.fromkeys(names, each)) for each in (largest, least))
    assert huge.lines()[0].endswith(f" = {10**48:,} person-minutes")
    assert huge.is_worth_it
    assert tiny.saved_person_minutes == Decimal("1e-48")
    assert tiny.lines()[-1].startswith("verdict: not worth it")
