"""What an attempt that ended somehow means for its task."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from asyncpoll.contract import Status
from tasks_app.errors import Retry
from tasks_app.retries import Backoff, RetryPolicy
from tasks_app.store import Change, Claimed
from tasks_app.worker.outcome import (
    Ending,
    Fate,
    conclude,
    poisoned,
    raised,
    release,
    returned,
)
from tests.unit.claims import claimed

GOOD = Ending(result="3")
FAILED = Ending(error_type="ValueError", error_message="boom", traceback="Traceback …")
PERMANENT = FAILED._replace(permanent=True)
POLICY = RetryPolicy(Backoff(base=1.0, cap=600.0))


def concluded(
    ending: Ending, task: Claimed | None = None, policy: RetryPolicy = POLICY, **how: Any
) -> Change:
    change = conclude(task or claimed(), ending, lambda _: policy, jitter=lambda: 0.5, **how)
    assert change is not None
    return change


def kinds(change: Change) -> list[str]:
    return [milestone.kind for milestone in change.milestones]


def test_a_result_ends_the_task_with_its_json_and_full_progress():
    """What a waiting client wants to see."""
    change = concluded(GOOD)
    assert (change.status, change.result, kinds(change)) == (Status.SUCCESS, "3", ["succeeded"])
    assert change.milestones[0].progress == 1.0
    assert not change.failed


def test_an_error_with_attempts_left_gives_the_task_back_after_a_delay():
    """It counts as a failure, says what went wrong, and when the next attempt may start."""
    change = concluded(FAILED, claimed(failures=1, max_attempts=3))
    assert (change.status, change.failed, kinds(change)) == (Status.PENDING, True, ["retried"])
    assert change.delay_seconds == 0.5 * 2
    assert (change.error_type, change.error_message) == ("ValueError", "boom")
    assert (
        change.milestones[0].message
        == "Attempt 2 failed (ValueError: boom); the next may start in 1.0 s."
    )


def test_an_error_in_the_last_attempt_fails_the_task_with_its_traceback():
    """No attempt is left."""
    change = concluded(FAILED, claimed(failures=2, max_attempts=3))
    assert (change.status, change.failed, kinds(change)) == (Status.FAILED, True, ["failed"])
    assert change.traceback == "Traceback …"


def test_a_result_that_is_not_json_is_not_tried_again():
    """The next attempt would return the same."""
    assert concluded(PERMANENT, claimed(failures=0, max_attempts=3)).status is Status.FAILED


@pytest.mark.parametrize(
    ("ending", "fate", "status"),
    [
        (FAILED, None, Status.CANCELLED),
        (FAILED, Fate.TIMED_OUT, Status.CANCELLED),
        (GOOD, Fate.TIMED_OUT, Status.CANCELLED),
        (FAILED, Fate.RELEASED, Status.CANCELLED),
        (GOOD, None, Status.SUCCESS),
        (PERMANENT, None, Status.FAILED),
    ],
)
def test_a_task_that_was_asked_to_stop_is_cancelled_unless_it_returned_something(
    ending, fate, status
):
    """Work that was finished anyway is not thrown away."""
    assert concluded(ending, fate=fate, cancelled=True).status is status


def test_a_time_out_names_the_limit_whatever_the_function_did_afterwards():
    """A result that came too late does not count."""
    change = concluded(GOOD, claimed(timeout_seconds=1.5, max_attempts=1), fate=Fate.TIMED_OUT)
    assert change.status is Status.FAILED
    assert change.error_type == "TimeoutError"
    assert change.error_message == "Attempt 1 exceeded its time limit of 1.5 s."


def test_a_release_is_no_failure_and_has_no_delay():
    """The worker went away; the task did nothing wrong."""
    change = concluded(Ending(error_type="CancelledError"), fate=Fate.RELEASED)
    assert change == release(claimed())
    assert (change.status, change.failed, change.delay_seconds) == (Status.PENDING, False, 0.0)
    assert kinds(change) == ["released"]


def test_a_result_during_the_release_counts():
    """It was finished in the last moment."""
    assert concluded(GOOD, fate=Fate.RELEASED).status is Status.SUCCESS


def test_a_lost_attempt_changes_nothing():
    """The task belongs to somebody else."""
    assert conclude(claimed(), GOOD, lambda _: POLICY, fate=Fate.LOST) is None


def test_a_cancellation_nobody_asked_for_is_a_failure():
    """A task that raises CancelledError by itself is not taken for cancelled."""
    change = concluded(raised(asyncio.CancelledError("own")), claimed(max_attempts=1))
    assert (change.status, change.error_type) == (Status.FAILED, "CancelledError")


def test_only_errors_that_the_task_lists_are_tried_again():
    """Subclasses included; any other ends the task at once, attempts left or not."""
    policy = RetryPolicy(Backoff(base=8.0), retry_on=(OSError,))
    again = concluded(raised(ConnectionError("reset")), policy=policy)
    assert (again.status, again.delay_seconds) == (Status.PENDING, 4.0)
    at_once = concluded(raised(ValueError("wrong")), policy=policy)
    assert (at_once.status, at_once.failed, at_once.error_type) == (
        Status.FAILED,
        True,
        "ValueError",
    )


def test_a_time_out_is_tried_again_whatever_the_task_lists():
    """As an expired lease is: neither says anything about the task's own errors."""
    policy = RetryPolicy(Backoff(base=1.0), retry_on=())
    cancelled = raised(asyncio.CancelledError())
    assert concluded(cancelled, policy=policy, fate=Fate.TIMED_OUT).status is Status.PENDING


def test_a_task_that_asks_for_a_retry_says_when():
    """Exactly then, without jitter, and although retry_on does not list it."""
    policy = RetryPolicy(Backoff(base=1.0), retry_on=())
    change = concluded(raised(Retry(after=60, reason="rate limited")), policy=policy)
    assert (change.status, change.failed, change.delay_seconds) == (Status.PENDING, True, 60)
    assert (change.error_type, change.error_message) == ("Retry", "rate limited")
    assert concluded(raised(Retry(after=0)), policy=policy).delay_seconds == 0
    assert concluded(raised(Retry()), policy=policy).delay_seconds == 0.5


def test_a_retry_is_never_given_beyond_the_attempts_allowed():
    """It counts as a failure like any other."""
    change = concluded(raised(Retry(after=1)), claimed(failures=2, max_attempts=3))
    assert (change.status, change.error_message) == (
        Status.FAILED,
        "The task asked to be tried again.",
    )


def test_a_cancelled_task_that_asks_for_a_retry_gets_none():
    """Whoever cancelled it wants it over."""
    assert concluded(raised(Retry(after=1)), cancelled=True).status is Status.CANCELLED


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a\x00b", "NUL"),
        (float("nan"), "NaN"),
        ("\ud800", "lone surrogate"),
        ("x" * 200, "limit is 100"),
        (object(), "not JSON"),
        ({("a", 1): 2}, "not JSON"),
    ],
)
def test_a_result_that_can_not_be_stored_says_which_task_and_why(value, why):
    """The message ends in a remedy that names the rule."""
    ending = returned("demo.task", value, limit=100)
    assert ending.permanent
    assert "The result of demo.task" in ending.error_message
    assert why in ending.error_message


def test_a_result_that_is_too_deep_is_a_permanent_failure():
    """Neither the encoder's recursion nor ours ends the worker."""
    deep: list[Any] = ["\x00"]
    for _ in range(100_000):
        deep = [deep]
    assert returned("demo.task", deep, limit=10_000_000).permanent


def test_a_value_whose_own_methods_raise_is_a_permanent_failure():
    """Results are other people's code."""

    class Hostile(dict):
        def items(self):
            raise OSError("no")

    ending = returned("demo.task", Hostile(a=1), limit=100)
    assert (ending.permanent, ending.error_type) == (True, "OSError")


def test_an_error_is_kept_as_text_that_postgres_takes():
    """NUL and lone surrogates are removed, the traceback does not start in the worker."""
    try:
        _raise("a\x00b\ud800c")
    except ValueError as error:
        ending = raised(error)
    assert ending.error_type == "ValueError"
    assert ending.error_message == "ab?c"
    assert "in _raise" in ending.traceback
    assert "in test_an_error_is_kept" not in ending.traceback
    assert "\x00" not in ending.traceback


def test_an_error_that_can_not_even_be_shown_is_still_an_ending():
    """Its str() raises."""

    class Shy(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    ending = raised(Shy())
    assert ending.error_type == "Shy"
    assert "can't be shown" in ending.error_message


def test_long_errors_are_cut():
    """A message of megabytes is nobody's help."""
    ending = raised(ValueError("x" * 1_000_000))
    assert len(ending.error_message) <= 4_000
    assert len(ending.traceback) <= 20_000


def test_a_poisoned_change_fails_its_task_and_says_why():
    """Nothing of the refused value is left in it."""
    change = concluded(GOOD)._replace(milestones=(*concluded(GOOD).milestones,) * 2)
    bad = poisoned(change, ValueError("unsupported Unicode escape sequence"))
    assert (bad.status, bad.result, bad.failed) == (Status.FAILED, None, True)
    assert kinds(bad) == ["failed"]
    assert "unsupported Unicode escape sequence" in bad.error_message


def _raise(message: str) -> None:
    raise ValueError(message)
