"""Five hundred waits whose server dies for five seconds: what it meets when it is back."""

from __future__ import annotations

import pytest

from tests.unit.storms import Outage, requests_a_second

WAITS = 500
HOLD = 25.0
DIES, BACK, END = 75, 80, 210


def steady(sent):
    """The rate before, once the waits are spread out."""
    return sum(sent[50:DIES]) / (DIES - 50)


@pytest.mark.parametrize("seed", range(2))
def test_the_rate_of_requests_stays_under_twice_its_steady_value_at_all_times(seed):
    """In every second: while the server is gone, while it comes back, and after."""
    sent = requests_a_second(WAITS, HOLD, Outage(DIES, BACK), END, seed)
    assert steady(sent) == pytest.approx(WAITS / HOLD, rel=0.1)
    assert max(sent[DIES:]) < 2 * steady(sent)
    assert sum(sent[END - 20 :]) / 20 == pytest.approx(steady(sent), rel=0.2)


def test_a_naive_client_shows_why():
    """It asks a hundred times a second for as long as nobody is there."""
    sent = requests_a_second(50, HOLD, Outage(60, 62), 63, seed=0, naive=True)
    assert max(sent[60:]) > 1000 * (50 / HOLD)
