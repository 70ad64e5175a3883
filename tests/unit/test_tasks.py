"""Declaring tasks."""

from __future__ import annotations

import datetime

import pytest

from tasks_app import catalogue
from tasks_app.context import current_task
from tasks_app.errors import InvalidArguments, InvalidTask, NoCurrentTask, NotJson, UnknownTask
from tasks_app.signature import check_names, check_types
from tasks_app.tasks import Task, task


@pytest.fixture(autouse=True)
def _own_catalogue(monkeypatch):
    monkeypatch.setattr(catalogue, "_tasks", {})


def sample(
    a: int, b: str | None = None, *, when: datetime.datetime | None = None, free=None
) -> int:
    """A function."""
    return a


def test_a_task_is_called_like_its_function():
    """Declaring one changes nothing about it."""
    declared = task(sample)
    assert declared(3) == 3
    assert declared.name == f"{__name__}.sample"
    assert catalogue.find(declared.name) is declared


def test_options_are_kept_and_using_changes_a_copy():
    """`using` is for one call."""
    declared = task(name="t", queue="q", priority=5, max_attempts=2, timeout=9, expose=True)(sample)
    other = declared.using(owner="alice", priority=-1)
    assert (other.owner, other.priority, other.queue, other.expose) == ("alice", -1, "q", True)
    assert (declared.owner, declared.priority) == ("", 5)


def test_a_task_that_declares_no_time_limit_has_one(settings):
    """A heartbeat could keep a hung task alive for ever otherwise."""
    settings.ASYNCPOLL = {"DEFAULT_TIMEOUT_SECONDS": 77.0, "DEFAULT_MAX_ATTEMPTS": 4}
    stored = task(name="t.limitless")(sample).prepare((1,), {})
    assert (stored.timeout_seconds, stored.max_attempts) == (77.0, 4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"priority": 101}, "priority is 101; it must be between -100 and 100"),
        ({"priority": -101}, "priority is -101"),
        ({"max_attempts": 0}, "max_attempts is 0"),
        ({"timeout": 0}, "timeout is 0; it must be at least 0.01 and at most 604800 seconds"),
        ({"timeout": 1e-320}, "timeout is 1e-320; it must be at least 0.01"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": float("inf")}, "timeout is inf"),
        ({"queue": ""}, "queue is empty"),
        ({"queue": "x" * 201}, "queue has 201 characters"),
        ({"name": "a\x00"}, "can't contain NUL"),
        ({"sensitive": ("secret",)}, "sensitive has 'secret'; it lists parameters"),
    ],
)
def test_a_declaration_that_breaks_a_rule_is_refused(options, words):
    """At import, naming value and rule."""
    with pytest.raises(InvalidTask) as refused:
        task(**options)(sample)
    assert words in str(refused.value)


def test_using_knows_what_it_may_change():
    """A typo is an error, not an ignored option."""
    with pytest.raises(InvalidTask, match=r"using\(\) can't change expose; it changes owner, "):
        task(sample).using(expose=True)
    with pytest.raises(InvalidTask, match="needs a time zone"):
        task(sample).using(run_at=datetime.datetime(2026, 1, 1))


def test_two_functions_can_not_share_a_name():
    """Which of them a worker would run is not to be guessed."""
    task(name="same")(sample)
    with pytest.raises(InvalidTask, match="give one of them another name"):
        task(name="same")(lambda: None)


def test_declaring_the_same_function_again_is_harmless():
    """Modules get reloaded."""
    task(name="same")(sample)
    assert isinstance(task(name="same")(sample), Task)


def test_an_unknown_name_says_where_to_declare_it():
    """A worker of another release meets this."""
    with pytest.raises(UnknownTask, match="ASYNCPOLL\\['TASK_MODULES'\\]"):
        catalogue.find("nobody")


def test_arguments_are_checked_before_anything_is_stored():
    """By name, and for being JSON."""
    declared = task(sample)
    with pytest.raises(InvalidArguments, match="missing a required argument: 'a'") as refused:
        declared.prepare([], {})
    assert "'int" not in str(refused.value) and "a: int" in str(refused.value)
    with pytest.raises(InvalidArguments, match="unexpected keyword argument 'z'"):
        declared.prepare([1], {"z": 1})
    with pytest.raises(NotJson, match="kwargs is not JSON"):
        declared.prepare([1], {"free": object()})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"a": "1"}, "a is '1'. Input should be a valid integer"),
        ({"a": True}, "a is True"),
        ({"a": 1.5}, "a is 1.5"),
        ({"a": 1, "b": 3}, "b"),
        ({"a": 1, "when": "soon"}, "when"),
    ],
)
def test_json_values_are_checked_against_annotations(arguments, words):
    """So that a mistake is the submitter's answer and not the worker's failure."""
    with pytest.raises(InvalidArguments) as refused:
        check_types("t", sample, check_names("t", sample, [], arguments))
    assert words in str(refused.value)


def test_fitting_json_values_pass():
    """Dates are strings in JSON; what has no annotation is not checked."""
    check_types("t", sample, {"a": 1, "b": None, "when": "2026-01-01T00:00:00Z", "free": [1]})


def test_annotations_that_nobody_can_check_are_not_checked():
    """An odd annotation must not make a task unusable."""

    class Odd:
        pass

    def func(a: Odd, b: "Missing" = None):  # noqa: F821, UP037
        return a, b

    check_types("t", func, {"a": 1, "b": 2})


def test_there_is_no_current_task_outside_one():
    """With the remedy."""
    with pytest.raises(NoCurrentTask, match="call it from code that a worker runs"):
        current_task()


def test_of_very_many_wrong_values_none_is_listed() -> None:
    """Listing half a million takes a second, in which nobody is answered."""

    def total(numbers: list[int]) -> int:
        return sum(numbers)

    declared = task(name="t.total")(total)
    with pytest.raises(InvalidArguments, match=r"numbers\.1 is \[1, 'x'\]"):
        declared.prepare_json([[1, "x"]], {})
    with pytest.raises(InvalidArguments, match="with 2,000 values in it that do not fit"):
        declared.prepare_json([], {"numbers": ["x"] * 2_000})
