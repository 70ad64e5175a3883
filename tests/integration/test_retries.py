"""Retries by the policy that a task declares, in a worker and in a project's own tests."""

from __future__ import annotations

import pytest

from asyncpoll.contract import Status
from tasks_app.testing import run_pending, wait_for
from tests import sample_tasks
from tests.support import aeventually
from tests.workers import ended, fetch, history, look, run_one, working

transactional = pytest.mark.django_db(transaction=True)


@transactional
async def test_a_listed_error_is_tried_again_and_any_other_ends_the_task():
    """At once, attempts left or not."""
    async with working():
        good = await run_one(sample_tasks.picky, "ConnectionError", "ConnectionError")
        bad = await run_one(sample_tasks.picky, "ConnectionError", "ValueError")
    assert (good.status, good.result) == (Status.SUCCESS, "3")
    assert (bad.status, bad.attempt, bad.error_type) == (Status.FAILED, 2, "ValueError")
    assert [row[1] for row in await history(bad.id)] == [
        "enqueued",
        "started",
        "retried",
        "started",
        "failed",
    ]


@transactional
async def test_a_task_that_asks_for_a_retry_is_due_when_it_said():
    """By the database's clock, counted as a failure, with its reason for whoever waits."""
    async with working():
        handle = await sample_tasks.ask_again.aenqueue(1, 3600)

        async def waits() -> bool:
            snapshot = await look(handle)
            return snapshot.status is Status.PENDING and snapshot.attempt == 1

        await aeventually(waits)
        ((failures, ready, after),) = await fetch(
            "SELECT t.failures, t.ready, extract(epoch FROM t.run_at - e.at)::float8 FROM tasks_app_task t "
            "JOIN tasks_app_taskevent e ON e.task_id = t.id AND e.kind = 'retried' WHERE t.id = %s",
            handle.id,
        )
        assert (failures, ready, after) == (1, False, 3600)
        message = (await look(handle)).message
        assert message == (
            "Attempt 1 failed (Retry: not ready yet); the next may start in 3600.0 s."
        )
        await fetch("UPDATE tasks_app_task SET run_at = now() WHERE id = %s", handle.id)
        snapshot = await ended(handle)
    assert (snapshot.status, snapshot.result) == (Status.SUCCESS, "2")


@transactional
async def test_a_task_can_not_ask_for_more_attempts_than_it_may_have():
    """The last one fails with the task's own reason."""
    async with working():
        snapshot = await run_one(sample_tasks.ask_again, 9, 0)
    assert (snapshot.status, snapshot.attempt) == (Status.FAILED, 3)
    assert (snapshot.error_type, snapshot.error_message) == ("Retry", "not ready yet")


@pytest.mark.django_db
def test_a_projects_own_tests_see_the_same_without_waiting():
    """A retry that is due in an hour is run at once."""
    assert wait_for(sample_tasks.ask_again.enqueue(2, 3600)).result == "3"
    assert wait_for(sample_tasks.ask_again.enqueue(3, 3600)).error_type == "Retry"
    sample_tasks.picky.enqueue("ConnectionError", "ValueError")
    [snapshot] = run_pending()
    assert (snapshot.status, snapshot.attempt) == (Status.FAILED, 2)
