"""Delays between attempts, and which errors get another."""

from __future__ import annotations

import pytest

from tasks_app import catalogue, conf
from tasks_app.errors import InvalidTask, Retry
from tasks_app.retries import Backoff, RetryPolicy
from tasks_app.tasks import task


@pytest.fixture(autouse=True)
def _own_catalogue(monkeypatch):
    monkeypatch.setattr(catalogue, "_tasks", {})


def func() -> None:
    """Does nothing."""


def test_delays_double_with_each_failure_up_to_the_cap():
    """Full jitter: anything between zero and that."""
    backoff = Backoff(base=1.0, cap=10.0)
    assert [backoff.delay(failures, 1.0) for failures in range(5)] == [1, 2, 4, 8, 10]
    assert Backoff(1.0, 600.0).delay(10_000, 1.0) == 600.0
    assert backoff.delay(3, 0.0) == 0.0


@pytest.mark.parametrize(
    ("base", "cap"), [(-1, 5), (10, 5), (1, float("inf")), (1, 1e12), (float("nan"), 5)]
)
def test_a_backoff_that_makes_no_sense_is_refused(base, cap):
    """Where it is written, with the rule and an example."""
    with pytest.raises(
        InvalidTask, match=r"or more, at most 31536000 \(a year\), for example Backoff\(base=2"
    ):
        Backoff(base, cap)


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), 1e12])
def test_a_retry_at_no_sensible_time_is_refused(after):
    """The task then fails with this sentence."""
    with pytest.raises(ValueError, match="it is a delay in seconds, from 0 to 31536000"):
        Retry(after=after)


def test_a_task_has_the_policy_that_it_declares():
    """A single class needs no tuple."""
    declared = task(name="t", retry_on=OSError, backoff=Backoff(2, 30))(func)
    assert declared.retry_policy == RetryPolicy(Backoff(2, 30), (OSError,))
    assert catalogue.retry_policy("t") == declared.retry_policy
    several = task(name="several", retry_on=[OSError, KeyError])(func)
    assert several.retry_on == (OSError, KeyError)


def test_a_task_that_declares_none_has_the_projects_policy(settings):
    """So has one that nobody here knows: another worker may."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "RETRY_BASE_SECONDS": 3, "RETRY_MAX_SECONDS": 7}
    assert conf.current().RETRY_BASE_SECONDS == 3
    expected = RetryPolicy(Backoff(3, 7), (BaseException,))
    assert task(func).retry_policy == catalogue.retry_policy("nobody") == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retry_on": ("OSError",)}, "retry_on has 'OSError'; it lists exception classes"),
        ({"retry_on": int}, "retry_on has <class 'int'>"),
        ({"backoff": 5}, "backoff is 5; use Backoff(base, cap)"),
    ],
)
def test_a_policy_that_breaks_a_rule_is_refused(options, words):
    """At import, naming value and rule."""
    with pytest.raises(InvalidTask) as refused:
        task(**options)(func)
    assert words in str(refused.value)
