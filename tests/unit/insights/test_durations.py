"""Percentiles: which sample one is, how many it needs, and what a sketch makes of it."""

from __future__ import annotations

import random
from statistics import median_low

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks_app.insights.durations import MOST_EXACT, Durations, needed, rank
from tasks_app.insights.sketch import RELATIVE_ERROR, Sketch, bin_of

MEASURED = st.lists(st.floats(0.01, 1e8), min_size=100, max_size=300)


def test_a_percentile_is_the_sample_at_the_nearest_rank():
    """Of 1 to 100 in any order, the percentile is its own number."""
    values = list(range(1, 101))
    random.Random(7).shuffle(values)
    durations = Durations(values)
    assert [durations.percentile(p) for p in (50, 95, 99)] == [50.0, 95.0, 99.0]
    assert durations.relative_error == 0.0


@settings(max_examples=40, deadline=None)
@given(MEASURED, st.sampled_from([50, 95, 99]))
def test_at_least_so_many_samples_do_not_exceed_a_percentile_and_fewer_do_not_exceed_less(
    values: list[float], percent: int
):
    """Hyndman and Fan's first definition, word by word."""
    found = Durations(values).percentile(percent)
    assert found in values
    share = sum(value <= found for value in values) / len(values)
    below = sum(value < found for value in values) / len(values)
    assert share >= percent / 100 > below or share == pytest.approx(percent / 100)
    if percent == 50:
        assert found == median_low(values)


@pytest.mark.parametrize(("percent", "least"), [(50, 10), (95, 20), (99, 100)])
def test_a_percentile_of_too_few_samples_is_not_known(percent: int, least: int):
    """Rather than the largest of what happened to be measured."""
    assert needed(percent) == least
    assert Durations([1.0] * (least - 1)).percentile(percent) is None
    assert Durations([1.0] * least).percentile(percent) == 1.0


@settings(max_examples=40, deadline=None)
@given(MEASURED, st.sampled_from([50, 95, 99]))
def test_a_sketch_is_within_its_error_of_the_measured_percentile(values: list[float], percent: int):
    """With the same definition of a percentile, so that nothing else differs."""
    exact = Durations(values).percentile(percent)
    sketch = Durations(sketch=Sketch((bin_of(value), 1) for value in values))
    found = sketch.percentile(percent)
    assert exact is not None
    assert found == pytest.approx(exact, rel=RELATIVE_ERROR * 1.000001)
    assert sketch.relative_error == RELATIVE_ERROR


def test_many_durations_become_a_sketch_and_take_no_more_memory():
    """The count goes on, the values are let go."""
    drawn = random.Random(3)
    values = [drawn.lognormvariate(8, 1) for _ in range(MOST_EXACT + 1_000)]
    durations = Durations(values[:MOST_EXACT])
    assert durations.relative_error == 0.0
    for value in values[MOST_EXACT:]:
        durations.add(value)
    assert len(durations) == len(values)
    assert not durations._exact
    exact = sorted(values)[rank(99, len(values))]
    assert durations.percentile(99) == pytest.approx(exact, rel=durations.relative_error)


def test_what_takes_no_time_at_all_has_a_bin():
    """A clock may not have moved."""
    assert bin_of(0.0) == bin_of(0.001)
