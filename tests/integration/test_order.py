"""What the table itself promises: urgent tasks first but nobody starved, and nothing that ties tasks to workers."""

from __future__ import annotations

import pytest
from django.db import connection

from tasks_app.limits import HEAD_START_SECONDS, new_task_id
from tasks_app.store import NewTask, enqueue
from tasks_app.store.driver import run
from tests.integration.claiming import claim_now

pytestmark = pytest.mark.django_db


def stored(priority: int, waits_seconds: float):
    """A task that has waited for so long."""
    task = NewTask(new_task_id(), "sample.add", "default", "", priority, "[1]", "{}", 1, 60.0)
    run(enqueue([task]))
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE tasks_app_task SET order_key = order_key - make_interval(secs => %s) WHERE id = %s",
            [waits_seconds, task.id],
        )
    return task.id


def test_a_task_of_low_priority_that_waited_long_comes_before_an_urgent_one_that_just_came():
    """A point is a head start, which ends: a flood of urgent tasks starves nobody."""
    waited = stored(-5, waits_seconds=11 * HEAD_START_SECONDS)
    urgent = stored(5, waits_seconds=0)
    waited_less = stored(-5, waits_seconds=9 * HEAD_START_SECONDS)
    assert [claim_now()[0].id for _ in range(3)] == [waited, urgent, waited_less]


def test_no_table_of_ours_has_a_foreign_key():
    """Where millions of tasks refer to workers, each worker's end would look through all of them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, conname FROM pg_constraint "
            "WHERE contype = 'f' AND conrelid::regclass::text LIKE 'tasks\\_app\\_%'"
        )
        assert cursor.fetchall() == []
