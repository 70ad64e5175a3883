"""What the next run of a suite may take."""

from __future__ import annotations

import pytest

from asyncpoll.planfile import TaskPlan
from asyncpoll.pytest_plugin.next_run import next_plan

FORMER = TaskPlan(
    task="report", samples=50, p50_ms=9000, p95_ms=40_000, ci_timeout_seconds=80, hold_seconds=20
)


@pytest.mark.parametrize(
    ("slowest_ms", "seconds"), [(1_000, 30), (14_999, 30), (15_050, 30.1), (90_000, 180)]
)
def test_the_next_run_may_take_twice_the_p95_and_never_less_than_30_s(slowest_ms, seconds):
    """The nineteenth of twenty is the p95."""
    plan = next_plan("report", [*[10.0] * 18, slowest_ms, 10 * slowest_ms], None)
    assert (plan.samples, plan.p50_ms, plan.p95_ms) == (20, 10, slowest_ms)
    assert plan.timeout_seconds == plan.ci_timeout_seconds == seconds
    assert plan.notes == ()


def test_the_order_of_tests_changes_nothing():
    """Workers report in any order."""
    measured = [float(number) for number in range(20)]
    assert next_plan("report", measured[::-1], FORMER) == next_plan("report", measured, None)


def test_with_too_few_the_slowest_stands_for_the_p95_and_says_so():
    """It is no p95, and is not shown as one."""
    plan = next_plan("report", [1000.0, 20_000.0], None)
    assert (plan.samples, plan.p95_ms, plan.ci_timeout_seconds) == (2, None, 40)
    assert plan.notes == ("The slowest stands for the P95, which needs 20 in one run.",)


@pytest.mark.parametrize(("slowest_ms", "seconds"), [(1_000, 80), (60_000, 120)])
def test_too_few_never_shorten_what_was_known(slowest_ms, seconds):
    """The earlier p95 stays, with all that else is known, and a slower one lengthens the wait."""
    plan = next_plan("report", [slowest_ms], FORMER)
    assert (plan.samples, plan.p95_ms, plan.hold_seconds) == (50, 40_000, 20)
    assert plan.timeout_seconds == plan.ci_timeout_seconds == seconds
    assert plan.notes == ("Kept from an earlier run: the last one had 1, a P95 needs 20.",)


def test_one_slow_run_lengthens_the_next_and_no_other():
    """A server that hung once would otherwise be waited for as long for ever."""
    slow = next_plan("report", [200_000.0], FORMER)
    assert slow.ci_timeout_seconds == 400
    assert next_plan("report", [1_000.0], slow).ci_timeout_seconds == 80


def test_a_plan_without_a_p95_is_replaced():
    """Nothing is lost by that."""
    former = next_plan("report", [50_000.0], None)
    assert next_plan("report", [1000.0, 2000.0], former).ci_timeout_seconds == 30
