"""From percentiles to parameters, and what is said where they are not known."""

from __future__ import annotations

from itertools import islice

import pytest

from tasks_app.insights.durations import Durations
from tasks_app.insights.plan import interval_at, make_plan
from tasks_app.insights.sketch import Sketch


def spread(p50: float, p95: float, p99: float) -> Durations:
    """A hundred durations with these percentiles."""
    return Durations([p50] * 50 + [p95] * 45 + [p99] * 5)


def test_the_parameters_follow_from_the_percentiles():
    """1.5 × P99 up to the next 10 s; P50 / 5; 2 × P95."""
    plan = make_plan("demo.report", spread(2_000, 18_000, 24_100))
    assert (plan.p50_ms, plan.p95_ms, plan.p99_ms, plan.samples) == (2_000, 18_000, 24_100, 100)
    assert plan.timeout_seconds == 40
    assert plan.ci_timeout_seconds == 36
    assert plan.hold_seconds == 25
    waits = plan.intervals()
    assert waits is not None
    assert list(islice(waits, 9)) == [0.4, 0.4, 0.4, 0.4, 0.4, 0.8, 1.6, 3.2, 5.0]
    assert plan.notes == ()


@pytest.mark.parametrize(
    ("p99_ms", "timeout"), [(1, 10), (6_666, 10), (6_667, 20), (20_000, 30), (20_001, 40)]
)
def test_the_time_out_is_rounded_up_to_ten_seconds(p99_ms: float, timeout: float):
    """Never down, and what is a multiple stays."""
    assert make_plan("t", Durations([p99_ms] * 100)).timeout_seconds == timeout


@pytest.mark.parametrize(("p95_ms", "seconds"), [(1_000, 30), (15_000, 30), (15_001, 30.002)])
def test_the_next_run_in_ci_has_at_least_thirty_seconds(p95_ms: float, seconds: float):
    """Or twice the P95."""
    assert make_plan("t", Durations([p95_ms] * 100)).ci_timeout_seconds == seconds


@pytest.mark.parametrize(("p99_ms", "hold"), [(10, 1), (1_500, 2), (15_000, 16), (90_000, 25)])
def test_the_hold_covers_the_end_of_nearly_all_also_when_jitter_shortens_it(
    p99_ms: float, hold: float
):
    """In whole seconds, up to what the server grants."""
    assert make_plan("t", Durations([p99_ms] * 100)).hold_seconds == hold
    assert make_plan("t", Durations([p99_ms] * 100), most_hold_seconds=12).hold_seconds == min(
        hold, 12
    )


def test_a_slow_task_is_polled_every_fifth_of_its_median_until_then_and_at_the_cap_after():
    """The cap is for what grows: the first five come as they were asked for."""
    waits = make_plan("t", Durations([60_000] * 100)).intervals()
    assert waits is not None
    assert list(islice(waits, 7)) == [12, 12, 12, 12, 12, 5, 5]


def test_what_is_not_known_is_none_and_said():
    """With the number of samples that there are and that are needed."""
    few = make_plan("t", Durations([1_000.0] * 30))
    assert (few.p50_ms, few.p95_ms, few.p99_ms) == (1_000, 1_000, None)
    assert (few.timeout_seconds, few.hold_seconds, few.ci_timeout_seconds) == (None, None, 30)
    assert few.notes == (
        "P99 needs 100 samples and there are 30: when to give up and the hold to ask for are not known yet.",
    )
    none = make_plan("t", Durations())
    assert none.intervals() is None
    assert none.notes == (
        "P50 needs 10 samples, P95 20, P99 100 and there are 0: the interval between polls, what a run in CI may take, "
        "when to give up and the hold to ask for are not known yet.",
    )


def test_a_plan_from_a_sketch_says_how_exact_it_is():
    """Its percentiles are not durations that were measured."""
    assert make_plan("t", Durations(sketch=Sketch([(300, 1_000)]))).notes == (
        "Percentiles are within 1% of what was measured.",
    )


@pytest.mark.parametrize(
    ("elapsed", "interval"),
    [(0, 0.4), (1.9, 0.4), (2.0, 0.8), (2.7, 0.8), (2.8, 1.6), (4.5, 3.2), (7.7, 5.0), (1e9, 5.0)],
)
def test_the_interval_that_a_poller_is_at_follows_from_how_long_it_polls(
    elapsed: float, interval: float
):
    """Five fifths of the median, then the growing ones; at once for any age."""
    plan = make_plan("t", Durations([2_000.0] * 100))
    assert interval_at(plan, elapsed) == pytest.approx(interval)
    assert interval_at(make_plan("t", Durations()), elapsed) is None


def test_the_longest_that_a_row_can_say_has_a_plan() -> None:
    """Somebody edited its moments by hand; nobody else's plan is to fail for that."""
    nine_thousand_years = 9_000 * 365.25 * 86_400_000
    assert make_plan("t", Durations([nine_thousand_years] * 100)).timeout_seconds
