"""Steps in a project's own tests, where nothing commits and no worker runs."""

from __future__ import annotations

from django.test import TestCase, TransactionTestCase

from asyncpoll.contract import Status
from tasks_app.models import StepRecord, TaskEvent
from tasks_app.testing import run_pending, wait_for
from tests import sample_tasks, step_tasks


class Shared:
    """Holds in a transaction that never commits, and in one that does."""

    def setUp(self):
        sample_tasks.seen.clear()

    def test_a_retry_gets_what_earlier_attempts_recorded(self):
        """As in a worker, coroutine or function."""
        for task in (step_tasks.fail_between, step_tasks.fail_between_sync):
            snapshot = wait_for(task.enqueue(task.name))
            assert (snapshot.status, snapshot.result, snapshot.attempt) == (
                Status.SUCCESS,
                "12",
                3,
            )
            assert sample_tasks.seen[task.name] == [("double", 1), ("total", 2)]
            records = StepRecord.objects.filter(task_id=snapshot.id).order_by("name")
            assert [(record.name, record.attempt) for record in records] == [
                ("double", 1),
                ("total", 2),
            ]

    def test_steps_become_history(self):
        """Each a milestone of its own."""
        snapshot = wait_for(step_tasks.twice.enqueue("history"))
        kinds = TaskEvent.objects.filter(task_id=snapshot.id).order_by("version")
        assert [event.kind for event in kinds] == [
            *("enqueued", "started", "step", "step", "succeeded"),
        ]

    def test_a_result_that_can_not_be_kept_fails_the_task(self):
        """With the name of the step."""
        handle = step_tasks.unfit.enqueue("nan")
        run_pending()
        snapshot = wait_for(handle)
        assert (snapshot.status, snapshot.error_type) == (Status.FAILED, "NotJson")
        assert "The result of step 'odd'" in snapshot.error_message


class InATestCase(Shared, TestCase):
    """Inside Django's transaction."""


class InATransactionTestCase(Shared, TransactionTestCase):
    """With real commits."""
