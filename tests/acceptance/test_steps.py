"""The demo task outlives its worker, and stops when it is asked to: real processes, real work."""

from __future__ import annotations

import os
import signal
from uuid import UUID

import psycopg

from asyncpoll.demo import dependency_report
from tasks_app import store
from tests import sample_tasks
from tests.acceptance.workers import Queue, runworker
from tests.support import eventually


def is_checking(queue: Queue, task_id: UUID) -> bool:
    """It is in the middle of stage 3, the longest."""
    ((message,),) = queue.ask("SELECT message FROM tasks_app_task WHERE id = %s", task_id)
    return message.startswith("checking ")


def milestones(queue: Queue, task_id: UUID) -> list[tuple[int, str, str]]:
    """Attempt, kind and message of each version."""
    return queue.ask(
        "SELECT attempt, kind, message FROM tasks_app_taskevent WHERE task_id = %s ORDER BY version",
        task_id,
    )


def test_when_its_worker_is_killed_in_stage_3_the_next_attempt_begins_with_stage_3(queue):
    """Stages 1 and 2 are done once, by the first attempt; the second one has their results."""
    with runworker(queue) as first:
        task = queue.enqueue(dependency_report)
        eventually(lambda: is_checking(queue, task))
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    with runworker(queue):
        eventually(lambda: queue.state(task)[0] == "SUCCESS", timeout=60)
    status, attempt, failures, report = queue.state(task)
    assert (status, attempt, failures) == ("SUCCESS", 2, 1)
    assert report["summary"]["distributions_inspected"] > 10

    told = milestones(queue, task)
    assert [(attempt, message) for attempt, kind, message in told if kind == "step"] == [
        (1, "Step 'gather' is done."),
        (1, "Step 'normalise' is done."),
    ]
    second = [message for attempt, kind, message in told if (attempt, kind) == (2, "progress")]
    assert second[0].startswith("reading RECORD of ")
    assert not any(message.startswith(("gathering", "normalising")) for message in second)
    assert [kind for _, kind, _ in told if kind != "progress"] == [
        *("enqueued", "started", "step", "step", "rescued", "started", "succeeded")
    ]


def test_a_report_that_is_cancelled_stops_between_two_files(queue):
    """Long before it would have ended, and its worker goes on with other tasks."""
    with runworker(queue, "--concurrency", "1"):
        task = queue.enqueue(dependency_report)
        eventually(lambda: is_checking(queue, task))
        with psycopg.connect(queue.url, autocommit=True) as connection:
            cancel = store.cancel(task)
            connection.execute(cancel.sql.encode(), cancel.params)
        eventually(lambda: queue.state(task)[0] == "CANCELLED")
        other = queue.enqueue(sample_tasks.add, 1)
        eventually(lambda: queue.state(other)[0] == "SUCCESS")
    told = milestones(queue, task)
    assert [kind for _, kind, _ in told if kind.startswith("cancel")] == [
        *("cancel_requested", "cancelled")
    ]
    assert not any("assembling" in message for _, _, message in told)
