"""How attempts end other than well: time limits, cancels, results that can't be stored."""

from __future__ import annotations

import threading

import pytest

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.store.pool import loop_pool
from tasks_app.worker import outcome
from tests import sample_tasks
from tests.support import aeventually
from tests.workers import ended, history, look, run_one, working

pytestmark = pytest.mark.django_db(transaction=True)

BAD_RESULTS = {
    "nul": "NUL",
    "nan": "NaN",
    "surrogate": "lone surrogate",
    "large": "the limit is",
    "object": "not JSON",
    "deep": "not JSON",
    "circular": "not JSON",
}


async def cancel(handle) -> None:
    await (await loop_pool()).run(store.cancel(handle.id))


async def test_bad_results_fail_their_own_tasks_and_say_why_while_their_neighbours_succeed():
    """All claimed together, so that they meet in one batch."""
    bad = {kind: await sample_tasks.bad_result.aenqueue(kind) for kind in BAD_RESULTS}
    good = [await sample_tasks.aadd.aenqueue(number) for number in range(8)]
    async with working(concurrency=20):
        for kind, why in BAD_RESULTS.items():
            snapshot = await ended(bad[kind])
            assert (snapshot.status, snapshot.attempt) == (Status.FAILED, 1), kind
            assert why in snapshot.error_message, kind
            assert "sample.bad_result" in snapshot.error_message
        for number, handle in enumerate(good):
            assert (await ended(handle)).result == str(number + 1)


async def test_a_value_that_only_the_database_refuses_fails_its_own_task(monkeypatch):
    """It slipped through every check of ours."""

    def careless(value, what, limit=None):
        return '"\\u0000"' if value == 13 else str(value)

    monkeypatch.setattr(outcome, "to_json", careless)
    handles = [await sample_tasks.aadd.aenqueue(number) for number in range(8, 16)]
    async with working(concurrency=20):
        ends = [await ended(handle) for handle in handles]
    assert [snapshot.status for snapshot in ends].count(Status.SUCCESS) == 7
    (failed,) = [snapshot for snapshot in ends if snapshot.status is Status.FAILED]
    assert handles[4].id == failed.id
    assert "The database refused" in failed.error_message
    assert "\\u0000" in failed.error_message


async def test_a_coroutine_that_takes_too_long_is_cancelled_and_fails():
    """The message names the limit."""
    async with working():
        snapshot = await run_one(sample_tasks.ahang, "slow")
        await aeventually(lambda: sample_tasks.seen["slow"] == ["cancelled"])
    assert (snapshot.status, snapshot.error_type) == (Status.FAILED, "TimeoutError")
    assert snapshot.error_message == "Attempt 1 exceeded its time limit of 0.3 s."


async def test_a_function_that_takes_too_long_fails_and_its_late_result_is_ignored():
    """The thread it left behind takes no slot."""
    async with working(concurrency=1) as worker:
        snapshot = await run_one(sample_tasks.hang, "stuck")
        assert (snapshot.status, snapshot.error_type) == (Status.FAILED, "TimeoutError")
        assert snapshot.error_message == "Attempt 1 exceeded its time limit of 0.3 s."
        assert (await run_one(sample_tasks.add, 1)).status is Status.SUCCESS
        assert worker.executor.stragglers == 1
        sample_tasks.gates["stuck"].set()
        await aeventually(lambda: not worker.executor.stragglers)
        assert await look(snapshot.id) == snapshot


@pytest.fixture
def heartbeat_far_away(settings):
    """What is heard in time is heard by notification."""
    settings.ASYNCPOLL = {
        **settings.ASYNCPOLL,
        "LEASE_SECONDS": 3600.0,
        "HEARTBEAT_SECONDS": 1000.0,
    }


async def test_a_running_coroutine_is_cancelled_at_its_next_await(heartbeat_far_away):
    """By the notification."""
    async with working():
        handle = await sample_tasks.sleep.aenqueue(60, "nap")
        await aeventually(lambda: sample_tasks.seen["started nap"])
        await cancel(handle)
        assert (await ended(handle)).status is Status.CANCELLED
    assert sample_tasks.seen["nap"] == ["cancelled"]
    assert [row[1] for row in await history(handle)][-2:] == ["cancel_requested", "cancelled"]


@pytest.mark.parametrize(
    ("how", "status"), [("raise", Status.CANCELLED), ("return", Status.SUCCESS)]
)
async def test_a_running_function_sees_the_cancel_and_may_stop_early(
    how, status, heartbeat_far_away
):
    """If it raises it is CANCELLED, if it returns something that counts."""
    async with working():
        handle = await sample_tasks.stop_early.aenqueue("early", how)
        await aeventually(lambda: sample_tasks.seen["started early"])
        await cancel(handle)
        assert (await ended(handle)).status is status
    assert sample_tasks.seen["early"] == ["noticed"]


async def test_a_cancel_whose_notification_was_lost_comes_with_the_heartbeat(settings):
    """The worker is deaf here."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "HEARTBEAT_SECONDS": 0.1}
    async with working() as worker:
        handle = await sample_tasks.sleep.aenqueue(60, "deaf")
        await aeventually(lambda: sample_tasks.seen["started deaf"])
        await worker._listener.stop()
        await cancel(handle)
        assert (await ended(handle)).status is Status.CANCELLED


async def test_a_cancel_of_one_task_leaves_its_neighbours_running():
    """Twenty at a barrier; one of them is cancelled and breaks it for nobody."""
    async with working(concurrency=3):
        sample_tasks.barriers["pair"] = threading.Barrier(2)
        victim = await sample_tasks.sleep.aenqueue(60, "victim")
        await aeventually(lambda: sample_tasks.seen["started victim"])
        first = await sample_tasks.meet.aenqueue("pair")
        await cancel(victim)
        assert (await ended(victim)).status is Status.CANCELLED
        assert (await run_one(sample_tasks.meet, "pair")).status is Status.SUCCESS
        assert (await ended(first)).status is Status.SUCCESS
