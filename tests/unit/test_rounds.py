"""Whether there may be owners whom looks at a few at a time have not met."""

from __future__ import annotations

import pytest

from tasks_app.claiming.rounds import Round
from tasks_app.store import Lane


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """A look gives three owners."""
    monkeypatch.setattr("tasks_app.claiming.rounds.MOST_LANES", 3)


def lanes(owners):
    return [Lane("default", owner) for owner in owners]


def test_it_goes_on_until_it_has_come_round():
    """However the last look overlaps the first."""
    round_ = Round()
    went_on = []
    for owners in ("abc", "def", "gab", "cde"):
        round_.meet(lanes(owners))
        went_on.append(round_.goes_on)
    assert went_on == [True, True, True, False]
    assert round_.is_cut


def test_a_look_that_was_not_cut_has_met_everybody():
    """There is nobody behind."""
    round_ = Round()
    round_.meet(lanes("ab"))
    assert not round_.goes_on
    assert not round_.is_cut


def test_begun_again_it_goes_round_once_more():
    """Somebody may have got work behind where it had come to."""
    round_ = Round()
    round_.meet(lanes("abc"))
    round_.restart()
    round_.meet(lanes("abc"))
    assert round_.goes_on
