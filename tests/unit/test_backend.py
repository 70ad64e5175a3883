"""What the framework's backend refuses, and what of it can be checked without a database."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.test import override_settings

from tasks_app.backend import TasksBackend, Terms, parse_terms
from tasks_app.compat import InvalidTask, InvalidTaskBackend, task_backends
from tests import framework_tasks
from tests.databases import ROOT

BACKEND = "tasks_app.backend.TasksBackend"


@pytest.fixture(autouse=True)
def tasks(settings):
    """TASKS with a backend of ours."""
    settings.TASKS = {
        "default": {"BACKEND": BACKEND, "QUEUES": ["default", "reports"]},
        "any": {"BACKEND": BACKEND, "QUEUES": []},
    }


def test_everything_that_the_framework_asks_for_is_supported():
    """The four promises of a backend."""
    backend = task_backends["default"]
    assert isinstance(backend, TasksBackend)
    assert backend.supports_defer
    assert backend.supports_async_task
    assert backend.supports_get_result
    assert backend.supports_priority


def test_a_queue_that_is_not_listed_is_refused():
    """With the framework's own exception and words, unless QUEUES is empty."""
    with pytest.raises(InvalidTask, match="Queue 'other' is not valid for backend"):
        framework_tasks.echo.using(queue_name="other")
    assert framework_tasks.echo.using(queue_name="other", backend="any").queue_name == "other"


def test_a_queue_that_was_valid_when_the_task_was_made_is_checked_again_when_it_is_enqueued():
    """Settings may have changed in between."""
    task = framework_tasks.echo.using(queue_name="reports")
    with override_settings(TASKS={"default": {"BACKEND": BACKEND}}):
        with pytest.raises(InvalidTask, match="Queue 'reports' is not valid for backend"):
            task.enqueue()


async def test_an_async_enqueue_is_checked_in_the_same_way():
    """Before anything is stored."""
    task = framework_tasks.echo.using(queue_name="reports")
    with override_settings(TASKS={"default": {"BACKEND": BACKEND}}):
        with pytest.raises(InvalidTask, match="Queue 'reports' is not valid for backend"):
            await task.aenqueue()


@pytest.mark.parametrize(
    ("queue", "rule"),
    [("", "queue name is empty"), ("q" * 201, "has 201 characters"), ("a\x00b", "NUL")],
)
def test_a_queue_name_that_cant_be_stored_is_refused(queue, rule):
    """Although every name is allowed."""
    with pytest.raises(InvalidTask, match=rule):
        framework_tasks.echo.using(queue_name=queue, backend="any")


def test_a_function_that_no_worker_would_find_by_its_name_is_refused():
    """A static method looks like a function at module level, and is not."""
    with pytest.raises(InvalidTask, match="define the function at module level"):
        framework_tasks.task(framework_tasks.Nested.function)


@pytest.mark.parametrize("priority", [-101, 101, 3.1])
def test_a_priority_out_of_bounds_is_refused(priority):
    """By the framework."""
    with pytest.raises(InvalidTask, match="priority must be a whole number between"):
        framework_tasks.echo.using(priority=priority)


def test_an_argument_that_is_not_json_is_refused():
    """As the framework's own backends refuse it."""
    with pytest.raises(TypeError, match="Unsupported type"):
        framework_tasks.echo.enqueue(object())


@pytest.mark.parametrize("value", [float("nan"), "a\x00b", "\ud800", b"\xff"])
def test_an_argument_that_cant_be_stored_is_refused(value):
    """With the error that the framework uses for a value of the right type."""
    with pytest.raises(ValueError):
        framework_tasks.echo.enqueue(value)


def test_a_task_of_the_framework_is_tried_once_unless_the_options_say_otherwise():
    """Code written for it does not expect to run again."""
    assert parse_terms("default", {}) == Terms(owner="", max_attempts=1, timeout=None)
    options = {"owner": "shop", "max_attempts": 5, "timeout": 2.5}
    assert parse_terms("default", options) == Terms(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retries": 3}, r"'retries'\] is not an option; remove it or use one of owner, "),
        ({"owner": 7}, r"'owner'\] is 7; it must be a text"),
        ({"owner": "x" * 201}, "must be a text of at most 200 characters"),
        ({"max_attempts": 0}, r"is 0; it must be a whole number between 1 and 100"),
        ({"max_attempts": True}, r"is True; it must be a whole number"),
        ({"max_attempts": "3"}, r"is '3'; it must be a whole number"),
        ({"timeout": 0}, r"is 0; it must be at least 0.01"),
        ({"timeout": float("nan")}, r"is nan; it must be at least 0.01"),
        ({"timeout": 1e-320}, r"is 1e-320; it must be at least 0.01"),
        ({"timeout": "1"}, r"is '1'; it must be at least 0.01"),
    ],
)
def test_a_wrong_option_is_named_by_check_and_refused_when_enqueueing(settings, options, message):
    """Declaring tasks still works, so that `manage.py check` can say it."""
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": options}}
    (error,) = task_backends["default"].check()
    assert error.id == "tasks_app.E021"
    with pytest.raises(InvalidTaskBackend, match=message) as refusal:
        framework_tasks.echo.enqueue()
    assert str(refusal.value) == error.msg
    assert "TASKS['default']" in error.msg


def test_nothing_is_found_wrong_with_a_good_entry():
    """No message."""
    assert list(task_backends["default"].check()) == []


EARLY = f"""
from django.conf import settings
settings.configure(TASKS={{"default": {{"BACKEND": "{BACKEND}"}}}})
from tests.framework_tasks import echo
print(type(echo.get_backend()).__name__)
"""


def test_tasks_can_be_declared_before_the_apps_are_loaded():
    """In a package's __init__, for example, which Django imports before any model."""
    ran = subprocess.run([sys.executable, "-c", EARLY], cwd=ROOT, capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("TasksBackend\n", 0), ran.stderr


@override_settings(INSTALLED_APPS=[])
def test_a_missing_app_is_named_with_its_remedy():
    """The table would be missing."""
    (error,) = task_backends["default"].check()
    assert "'tasks_app'" in error.hint
