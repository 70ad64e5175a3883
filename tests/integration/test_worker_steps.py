"""Steps in a worker: what is recorded, what is not done again, and what is dropped."""

from __future__ import annotations

import asyncio

import pytest
from django.core.exceptions import SynchronousOnlyOperation

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.errors import LeaseLost, NoCurrentTask, StepRefused
from tasks_app.models.task import new_task_id
from tasks_app.store.pool import loop_pool
from tasks_app.tasks import step, step_sync
from tests import sample_tasks, step_tasks
from tests.integration.test_worker_faults import make_due, take_away
from tests.support import aeventually
from tests.workers import ended, fetch, history, look, run_one, working

pytestmark = pytest.mark.django_db(transaction=True)


async def records(task) -> list[tuple[str, int, object]]:
    """Name, attempt and result of each step record."""
    return await fetch(
        "SELECT name, attempt, result FROM tasks_app_steprecord WHERE task_id = %s ORDER BY at",
        task.id,
    )


@pytest.mark.parametrize("task", [step_tasks.fail_between, step_tasks.fail_between_sync])
async def test_a_step_that_was_done_is_not_done_again_by_a_later_attempt(task):
    """Neither the first, by the second attempt, nor the second, by the third; each is a version."""
    async with working():
        snapshot = await run_one(task, "note")
    assert (snapshot.status, snapshot.result, snapshot.attempt) == (Status.SUCCESS, "12", 3)
    assert sample_tasks.seen["note"] == [("double", 1), ("total", 2)]
    assert await records(snapshot) == [("double", 1, [2, 4, 6]), ("total", 2, 12)]
    rows = await history(snapshot.id)
    assert [row[0] for row in rows] == list(range(1, snapshot.version + 1))
    assert [row[1] for row in rows] == [
        *("enqueued", "started", "step", "retried"),
        *("started", "step", "retried"),
        *("started", "succeeded"),
    ]


async def test_a_step_returns_once_everybody_can_see_its_record():
    """What follows it may rely on that."""
    async with working():
        assert (await run_one(step_tasks.look_up, 3)).result == "[1, 2, 3]"


async def test_a_step_is_a_milestone_and_comes_after_what_was_reported_before_it():
    """Its name is in the message and in the data."""
    async with working():
        handle = await step_tasks.at_gate.aenqueue("shown")

        async def shown() -> bool:
            return (await look(handle)).message == "Step 'first' is done."

        await aeventually(shown)
        snapshot = await look(handle)
        assert (snapshot.status, snapshot.version, snapshot.progress) == (Status.RUNNING, 4, 0.25)
        sample_tasks.gates["shown"].set()
        await ended(handle)
    rows = await history(handle)
    assert [row[1:] for row in rows[2:4]] == [
        ("progress", 0.25, "said before"),
        ("step", None, "Step 'first' is done."),
    ]
    data = "SELECT data FROM tasks_app_taskevent WHERE task_id = %s AND kind = 'step'"
    assert await fetch(data, handle.id) == [({"step": "first"},)]


@pytest.mark.parametrize(
    ("task", "error"),
    [(step_tasks.lose_sync, LeaseLost), (step_tasks.lose, asyncio.CancelledError)],
)
async def test_a_step_of_an_attempt_that_lost_its_task_is_not_recorded(task, error, emitted):
    """A function is told by an exception, a coroutine is cancelled; the next attempt does the step."""
    async with working():
        handle = await task.aenqueue("late")
        await aeventually(lambda: sample_tasks.seen["in step late"] == [1])
        await take_away(handle.id)
        sample_tasks.gates["late"].set()
        await aeventually(lambda: sample_tasks.seen["error late"])
        assert [type(raised) for raised in sample_tasks.seen["error late"]] == [error]
        assert [facts["id"] for facts in emitted.of("task.fenced")] == [handle.id]
        assert await records(handle) == []
        await make_due(handle.id)
        snapshot = await ended(handle)
    assert (snapshot.status, snapshot.result) == (Status.SUCCESS, '"by attempt 2"')
    assert await records(handle) == [("slow", 2, "by attempt 2")]
    if error is LeaseLost:
        said = str(sample_tasks.seen["error late"][0])
        assert f"Step 'slow' of steps.lose_sync {handle.id} attempt 1 was not recorded" in said
        assert "the attempt does not hold the task any more" in said


@pytest.mark.parametrize(
    ("kind", "why"),
    [("nan", "NaN"), ("large", "the limit is 1,048,576"), ("object", "not JSON serializable")],
)
async def test_a_result_that_can_not_be_kept_is_refused_with_the_steps_name(kind, why):
    """It is the task's error, where the mistake is."""
    async with working():
        snapshot = await run_one(step_tasks.unfit, kind)
    assert (snapshot.status, snapshot.error_type) == (Status.FAILED, "NotJson")
    assert "The result of step 'odd'" in snapshot.error_message
    assert why in snapshot.error_message
    assert await records(snapshot) == []


async def test_a_name_stands_for_one_result_within_the_task(emitted):
    """The second call gets the first one's, and two at once are refused."""
    async with working():
        snapshot = await run_one(step_tasks.twice, "again")
    assert snapshot.result == "[1, 1]"
    given, refused = sample_tasks.seen["results again"]
    assert given == 3
    assert isinstance(refused, StepRefused)
    assert "Step 'both' was begun while it is being done" in str(refused)
    assert [attempt for _, attempt in sample_tasks.seen["again"]] == [1, 1]


async def test_steps_of_many_tasks_and_threads_are_committed_in_groups(emitted):
    """Each waits for its commit, and a commit takes along whatever has gathered."""
    async with working(concurrency=20):
        handles = [await step_tasks.look_up.aenqueue(10) for _ in range(20)]
        many = await step_tasks.threads.aenqueue(20)
        for handle in handles:
            assert (await ended(handle)).result == str(list(range(1, 11)))
        assert (await ended(many)).result == str(list(range(20)))
    changes = [facts["size"] for facts in emitted.of("task.committed")]
    assert sum(changes) >= 20 * 10
    assert max(changes) > 1


async def test_running_again_does_every_step_again():
    """The new task has no records."""
    async with working():
        first = await run_one(step_tasks.look_up, 2)
        again = new_task_id()
        await (await loop_pool()).run(store.run_again(first.id, again))
        assert (await ended(again)).result == "[1, 2]"


async def test_a_function_that_looks_between_items_stops_when_it_is_cancelled():
    """Also one that goes on after any error."""
    async with working():
        handle = await step_tasks.stop_between.aenqueue("between")
        await aeventually(lambda: sample_tasks.seen["started between"])
        await (await loop_pool()).run(store.cancel(handle.id))
        snapshot = await ended(handle)
    assert (snapshot.status, snapshot.error_type) == (Status.CANCELLED, "")
    assert not sample_tasks.seen["between"]


async def test_a_step_outside_a_task_is_refused_and_a_sync_one_in_a_coroutine_too():
    """Each message says what to write instead."""
    with pytest.raises(NoCurrentTask, match="outside a running task"):
        await step("x", str)
    with pytest.raises(SynchronousOnlyOperation, match=r"write `await step\('x', …\)`"):
        step_sync("x", str)
