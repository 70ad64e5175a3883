"""What a project's own tests may do: enqueue, run what is pending, wait."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection
from django.test import TestCase, TransactionTestCase
from django.utils import timezone

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.models import Task, TaskEvent
from tasks_app.store.driver import run
from tasks_app.testing import run_pending, wait_for
from tests import sample_tasks
from tests.integration.claiming import claim_now


class Shared:
    """Holds in a transaction that never commits, and in one that does."""

    def test_a_sync_task_runs_in_the_calling_thread(self):
        """On Django's own connection."""
        handle = sample_tasks.backend_pid.enqueue()
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (here,) = cursor.fetchone()
        assert wait_for(handle).result == str(here)

    def test_an_async_task_uses_the_same_connection(self):
        """Through Django's async path."""
        here = wait_for(sample_tasks.backend_pid.enqueue()).result
        assert wait_for(sample_tasks.abackend_pid.enqueue()).result == here

    def test_a_task_can_be_named_by_handle_by_id_and_by_text(self):
        """Whatever the test has."""
        handle = sample_tasks.add.enqueue(1, b=2)
        assert wait_for(handle).result == "3"
        assert wait_for(handle.id) == wait_for(str(handle.id)) == wait_for(handle)

    def test_all_that_is_pending_runs_in_order_and_is_given(self):
        """Each task once, as it is afterwards."""
        handles = [sample_tasks.add.enqueue(1), sample_tasks.aadd.enqueue(2)]
        snapshots = run_pending()
        assert [snapshot.id for snapshot in snapshots] == [handle.id for handle in handles]
        assert [snapshot.result for snapshot in snapshots] == ["2", "3"]
        assert run_pending() == []

    def test_a_limit_stops_early(self):
        """The rest stays PENDING."""
        for number in range(3):
            sample_tasks.add.enqueue(number)
        assert len(run_pending(limit=2)) == 2
        assert Task.objects.filter(status="PENDING").count() == 1

    def test_only_the_queues_asked_for_run(self):
        """As with runworker."""
        sample_tasks.add.enqueue(1)
        other = sample_tasks.other_queue.enqueue()
        assert [snapshot.id for snapshot in run_pending(queues=["other"])] == [other.id]

    def test_what_a_task_enqueues_runs_as_well(self):
        """Until nothing is left."""
        sample_tasks.chain.enqueue(3)
        assert [snapshot.result for snapshot in run_pending()] == ["3", "2", "1", "0"]

    def test_retries_do_not_wait(self):
        """The task is back at once, and its failures are counted."""
        snapshot = wait_for(sample_tasks.fail_once.enqueue())
        assert (snapshot.status, snapshot.result, snapshot.attempt) == (Status.SUCCESS, "2", 2)
        snapshot = wait_for(sample_tasks.fail.enqueue("no"))
        assert (snapshot.status, snapshot.error_message) == (Status.FAILED, "no")

    def test_reports_become_history(self):
        """Every one of them, and the row shows the last."""
        handle = sample_tasks.report.enqueue([0.1, 0.2])
        areport = sample_tasks.areport.enqueue([0.5])
        snapshot = wait_for(handle)
        events = TaskEvent.objects.filter(task_id=handle.id).order_by("version")
        assert [(event.version, event.kind, event.progress) for event in events] == [
            (1, "enqueued", None),
            (2, "started", None),
            (3, "progress", 0.1),
            (4, "progress", 0.2),
            (5, "succeeded", 1.0),
        ]
        assert (snapshot.version, snapshot.message) == (5, "at 0.2")
        assert wait_for(areport).message == "at 0.5"

    def test_bad_results_and_attempts_to_leave_fail_their_task(self):
        """As in a worker."""
        assert "NaN" in wait_for(sample_tasks.bad_result.enqueue("nan")).error_message
        assert wait_for(sample_tasks.leave.enqueue()).error_type == "SystemExit"

    def test_a_large_result_is_given_whole(self):
        """Rows come without it."""
        assert wait_for(sample_tasks.repeat.enqueue("é", 50_000)).result == f'"{"é" * 50_000}"'

    def test_a_statement_that_fails_in_a_task_does_not_end_the_test(self):
        """The connection can be used afterwards."""
        snapshot = wait_for(sample_tasks.break_transaction.enqueue())
        assert (snapshot.status, snapshot.error_type) == (Status.FAILED, "DataError")
        assert Task.objects.count() == 1

    def test_waiting_for_a_task_that_is_not_due_fails_and_says_so(self):
        """It would take for ever."""
        tomorrow = timezone.now() + timedelta(days=1)
        handle = sample_tasks.add.using(run_at=tomorrow).enqueue(1)
        with pytest.raises(AssertionError, match="PENDING, and it is not due yet"):
            wait_for(handle)

    def test_waiting_for_a_task_that_somebody_else_runs_fails_and_says_so(self):
        """A worker outside the test, say."""
        handle = sample_tasks.add.enqueue(1)
        claim_now()
        with pytest.raises(AssertionError, match="RUNNING, and somebody else is running it"):
            wait_for(handle)

    def test_waiting_for_a_task_that_does_not_exist_fails_and_says_so(self):
        """Or that was enqueued on another connection."""
        with pytest.raises(AssertionError, match=r"There is no task .* enqueue it in the test"):
            wait_for(uuid4())

    def test_a_cancelled_task_has_ended(self):
        """Nothing has to run for it."""
        handle = sample_tasks.add.enqueue(1)
        run(store.cancel(handle.id))
        assert wait_for(handle).status is Status.CANCELLED


class InATestCase(Shared, TestCase):
    """Inside Django's transaction."""

    def test_nothing_is_left_for_other_connections_to_see(self):
        """The transaction never commits."""
        wait_for(sample_tasks.add.enqueue(1))
        assert connection.in_atomic_block

    def test_a_transaction_that_was_broken_and_mended_goes_on(self):
        """Other code's savepoints are left alone."""
        handle = sample_tasks.add.enqueue(1)
        wait_for(sample_tasks.break_transaction.enqueue())
        with pytest.raises(IntegrityError):
            Task.objects.filter(id=handle.id).update(status="NONSENSE")


class InATransactionTestCase(Shared, TransactionTestCase):
    """With real commits."""
