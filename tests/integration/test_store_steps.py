"""What `commit` records of steps, and who gets rid of it."""

from __future__ import annotations

import json
import uuid

import pytest
from django.db import DataError, transaction

from asyncpoll.contract import Status
from tasks_app.models import StepRecord, TaskEvent
from tasks_app.models.task import new_task_id
from tasks_app.store import (
    Change,
    Committed,
    Milestone,
    NewTask,
    StepResult,
    commit,
    delete,
    enqueue,
    read_step,
    read_steps,
    run_again,
)
from tasks_app.store.driver import run
from tests.integration.claiming import claim_now

WORKER = uuid.uuid4()
pytestmark = pytest.mark.django_db


def running(count=1):
    run(
        enqueue(
            [
                NewTask(new_task_id(), "sample.add", "default", "", 0, "[]", "{}", 3, 60.0)
                for _ in range(count)
            ]
        )
    )
    return claim_now(count, worker=WORKER)


def done(name, result="1"):
    return Milestone("step", message=name, step=StepResult(name, result))


def steps(task, *names, attempt=1):
    return Change(task.id, attempt, Status.RUNNING, tuple(done(name) for name in names))


def test_each_step_of_a_batch_is_a_record_and_a_version_of_its_own_task():
    """Whatever else the batch has."""
    first, second, third = running(3)
    run(
        commit(
            WORKER,
            [
                steps(first, "a", "b"),
                Change(second.id, 1, Status.RUNNING, (Milestone("progress", 0.5), done("a", "2"))),
                Change(third.id, 1, Status.SUCCESS, (Milestone("succeeded"),), result="3"),
            ],
        )
    )
    assert run(read_steps(first.id)) == {"a": "1", "b": "1"}
    assert run(read_steps(second.id)) == {"a": "2"}
    assert run(read_steps(third.id)) == {}
    kinds = TaskEvent.objects.filter(task_id=second.id).order_by("version")
    assert [event.kind for event in kinds] == ["enqueued", "started", "progress", "step"]
    assert StepRecord.objects.get(task_id=second.id, name="a").attempt == 1


@pytest.mark.parametrize("value", [None, {"b": [1.5, "é"], "aa": {}}, [], "", 10**20])
def test_a_result_comes_back_as_it_went_in(value):
    """None is a result as well, and not the want of one."""
    (task,) = running()
    milestone = done("a", json.dumps(value))
    run(commit(WORKER, [Change(task.id, 1, Status.RUNNING, (milestone,))]))
    stored = run(read_step(task.id, "a"))
    assert stored is not None
    assert json.loads(stored) == value
    assert run(read_step(task.id, "b")) is None


@pytest.mark.parametrize(
    ("worker", "attempt"),
    [(uuid.uuid4(), 1), (WORKER, 2), (WORKER, 0)],
    ids=["another's", "later", "earlier"],
)
def test_a_step_that_is_fenced_off_leaves_no_record(worker, attempt):
    """Another worker's, or another attempt's."""
    (task,) = running()
    assert run(commit(worker, [steps(task, "a", attempt=attempt)])) == []
    assert run(read_steps(task.id)) == {}


def test_a_step_that_goes_with_the_end_of_its_attempt_is_recorded():
    """A failure right after it, in one batch."""
    (task,) = running()
    milestones = (done("a"), Milestone("retried"))
    run(commit(WORKER, [Change(task.id, 1, Status.PENDING, milestones, failed=True)]))
    assert run(read_steps(task.id)) == {"a": "1"}


def test_a_commit_that_is_tried_again_records_a_step_once():
    """Its first try was committed, and only the acknowledgement lost."""
    (task,) = running()
    for _ in range(2):
        assert run(commit(WORKER, [steps(task, "a")]))
    assert StepRecord.objects.filter(task_id=task.id).count() == 1


def test_a_record_that_the_database_refuses_leaves_nothing_of_its_change():
    """One statement writes both."""
    (task,) = running()
    with pytest.raises(DataError), transaction.atomic():
        run(commit(WORKER, [Change(task.id, 1, Status.RUNNING, (done("a", "{"),))]))
    assert TaskEvent.objects.filter(task_id=task.id).count() == 2


def test_records_go_with_their_task_and_with_no_other():
    """Nobody would ever look for them again."""
    gone, stays = running(2)
    run(commit(WORKER, [steps(gone, "a", "b"), steps(stays, "a")]))
    assert run(delete([gone.id])) == [gone.id]
    assert run(read_steps(gone.id)) == {}
    assert run(read_steps(stays.id)) == {"a": "1"}


def test_a_task_that_is_run_again_begins_without_records():
    """It is another task."""
    (task,) = running()
    ended = Change(task.id, 1, Status.SUCCESS, (done("a"), Milestone("succeeded")), result="1")
    assert run(commit(WORKER, [ended])) == [Committed(task.id, Status.SUCCESS, 4)]
    again = new_task_id()
    run(run_again(task.id, again))
    assert run(read_steps(again)) == {}
