"""Tasks of Django's Tasks framework in a user's own TestCase."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from asyncpoll.contract import Status
from tasks_app.compat import task_finished, task_started
from tasks_app.testing import run_pending, wait_for
from tests import framework_tasks

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def tasks(settings):
    """TASKS with a backend of ours."""
    settings.TASKS = {
        "default": {"BACKEND": "tasks_app.backend.TasksBackend"},
        "again": {
            "BACKEND": "tasks_app.backend.TasksBackend",
            "OPTIONS": {"max_attempts": 3},
        },
    }


@pytest.fixture
def heard():
    """Name and status of each signal."""
    seen = []

    def receive(signal, task_result, **kwargs):
        name = "started" if signal is task_started else "finished"
        seen.append((name, str(task_result.status)))

    for signal in (task_started, task_finished):
        signal.connect(receive)
    yield seen
    for signal in (task_started, task_finished):
        signal.disconnect(receive)


@pytest.mark.parametrize("task", [framework_tasks.echo, framework_tasks.aecho])
def test_what_is_pending_runs_right_here(task, heard):
    """With its signals."""
    result = task.enqueue(1)
    assert wait_for(result.id).status is Status.SUCCESS
    result.refresh()
    assert result.return_value == [[1], {}]
    assert heard == [("started", "RUNNING"), ("finished", "SUCCESSFUL")]


def test_a_failure_is_told_once_no_attempt_is_left(heard):
    """Each attempt starts; the task finishes once."""
    result = framework_tasks.fail.using(backend="again").enqueue()
    run_pending()
    result.refresh()
    assert (result.status, result.attempts) == ("FAILED", 3)
    assert heard == [("started", "RUNNING")] * 3 + [("finished", "FAILED")]


def test_a_task_without_a_function_fails():
    """As in a worker."""
    result = framework_tasks.echo.enqueue()
    from tasks_app.models import Task

    Task.objects.update(name="missing.function")
    assert wait_for(result.id).error_type == "UnknownTask"


def test_a_task_that_is_not_due_does_not_run():
    """Its time lies ahead."""
    framework_tasks.echo.using(run_after=timezone.now() + timedelta(hours=1)).enqueue()
    assert run_pending() == []
