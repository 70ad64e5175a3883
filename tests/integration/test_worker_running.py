"""Tasks through a real worker and a real database."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connections
from django.utils import timezone

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.store import Lane, Share
from tasks_app.store.pool import close_loop_pool, loop_pool
from tests import sample_tasks
from tests.support import aeventually
from tests.workers import ended, fetch, history, look, run_one, working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("task", [sample_tasks.add, sample_tasks.aadd])
async def test_a_task_runs_and_its_result_is_stored(task):
    """In a thread or on the loop."""
    async with working():
        snapshot = await run_one(task, 2, b=3)
    assert (snapshot.status, snapshot.result, snapshot.attempt) == (Status.SUCCESS, "5", 1)
    assert [row[:2] for row in await history(snapshot.id)] == [
        (1, "enqueued"),
        (2, "started"),
        (3, "succeeded"),
    ]


async def test_as_many_sync_tasks_run_at_once_as_there_are_slots():
    """Twenty meet at a barrier that lets none pass before the twentieth has come."""
    async with working(concurrency=20):
        sample_tasks.barriers["twenty"] = threading.Barrier(20)
        handles = [await sample_tasks.meet.aenqueue("twenty") for _ in range(20)]
        results = [(await ended(handle)).result for handle in handles]
    assert sorted(map(int, results)) == list(range(20))


async def test_no_more_tasks_run_at_once_than_there_are_slots():
    """The third starts when one of two has ended."""
    async with working(concurrency=2) as worker:
        handles = [await sample_tasks.wait_at.aenqueue(f"gate {number}") for number in range(3)]
        await aeventually(lambda: worker.held.running == 2)
        statuses = [(await look(handle)).status for handle in handles]
        assert sorted(statuses) == [Status.PENDING, Status.RUNNING, Status.RUNNING]
        for number in range(3):
            sample_tasks.gates[f"gate {number}"].set()
        for handle in handles:
            assert (await ended(handle)).status is Status.SUCCESS


async def test_a_worker_leaves_other_queues_alone():
    """`--queues other` runs only that one."""
    async with working(queues=("other",)):
        left = await sample_tasks.add.aenqueue(1)
        assert (await run_one(sample_tasks.other_queue)).status is Status.SUCCESS
        assert (await look(left)).status is Status.PENDING


async def test_a_worker_without_queues_runs_all_of_them():
    """Every queue that has something ready."""
    async with working():
        assert (await run_one(sample_tasks.other_queue)).result == '"other"'
        assert (await run_one(sample_tasks.add, 1)).result == "2"


async def test_a_failing_task_is_tried_again_and_then_fails():
    """With its error, its traceback, and a history of every attempt."""
    async with working():
        snapshot = await run_one(sample_tasks.fail, "broken")
    assert (snapshot.status, snapshot.attempt) == (Status.FAILED, 2)
    assert (snapshot.error_type, snapshot.error_message) == ("ValueError", "broken")
    assert [row[1] for row in await history(snapshot.id)] == [
        "enqueued",
        "started",
        "retried",
        "started",
        "failed",
    ]
    ((traceback,),) = await fetch("SELECT traceback FROM tasks_app_task WHERE id = %s", snapshot.id)
    assert "raise ValueError(message)" in traceback


async def test_a_task_that_fails_once_succeeds_at_its_second_attempt():
    """And nothing of the error is left."""
    async with working():
        snapshot = await run_one(sample_tasks.fail_once)
    assert (snapshot.status, snapshot.result, snapshot.error_type) == (Status.SUCCESS, "2", "")


async def test_a_delayed_task_starts_when_it_is_due_although_the_poll_is_far_away(settings):
    """Promotion sleeps until then."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WORKER_POLL_SECONDS": 3600.0}
    run_at = timezone.now() + timedelta(seconds=0.5)
    handle = await sample_tasks.aadd.using(run_at=run_at).aenqueue(1)
    async with working():
        snapshot = await ended(handle)
    assert snapshot.started_at is not None
    assert snapshot.started_at >= run_at


async def test_a_notification_starts_a_task_although_the_poll_is_far_away(settings):
    """Enqueueing tells the workers."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WORKER_POLL_SECONDS": 3600.0}
    async with working():
        assert (await run_one(sample_tasks.aadd, 1)).status is Status.SUCCESS


async def test_malformed_notifications_leave_the_worker_working(emitted):
    """Anybody may NOTIFY."""
    async with working():
        for payload in ("", "cancel:nonsense", "queue:", "\u2603" * 100):
            await fetch("SELECT pg_notify('asyncpoll_work', %s)", payload)
        await aeventually(lambda: len(emitted.of("work.malformed")) == 4)
        assert (await run_one(sample_tasks.aadd, 1)).status is Status.SUCCESS


async def test_a_claim_never_takes_more_than_asked():
    """Also over a table without statistics, where the planner guesses."""
    pool = await loop_pool()
    for _ in range(30):
        await sample_tasks.aadd.aenqueue(1)
    worker = uuid4()
    sizes = [
        len(await pool.run(store.claim(worker, [Share(Lane("default", ""), 1)], 15.0)))
        for _ in range(31)
    ]
    await close_loop_pool()
    assert sizes == [1] * 30 + [0]


@pytest.mark.parametrize(
    ("task", "argument", "error"),
    [
        (sample_tasks.leave, "sync", "SystemExit"),
        (sample_tasks.aleave, "SystemExit", "SystemExit"),
        (sample_tasks.aleave, "KeyboardInterrupt", "KeyboardInterrupt"),
        (sample_tasks.aleave, "CancelledError", "CancelledError"),
    ],
)
async def test_a_task_that_tries_to_end_the_process_fails_alone(task, argument, error):
    """The worker goes on."""
    async with working():
        snapshot = await run_one(task, argument)
        assert (snapshot.status, snapshot.error_type) == (Status.FAILED, error)
        assert (await run_one(sample_tasks.add, 1)).status is Status.SUCCESS


async def test_an_error_that_is_no_text_is_stored_cleaned():
    """NUL and lone surrogates in a message do not keep the failure from being told."""
    async with working():
        snapshot = await run_one(sample_tasks.unprintable)
    assert (snapshot.status, snapshot.error_message) == (Status.FAILED, "ab?c")


@pytest.mark.parametrize("task", [sample_tasks.backend_pid, sample_tasks.abackend_pid])
async def test_a_dropped_database_connection_does_not_outlive_the_attempt_it_hit(task, monkeypatch):
    """Kept connections are looked after in the thread that has them, so the next attempt gets a new one."""
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", None)
    async with working(concurrency=1):
        first = await run_one(task)
        await fetch("SELECT pg_terminate_backend(%s)", int(first.result))
        second = await run_one(task)
    assert second.status is Status.SUCCESS
    assert second.attempt <= 2
    assert second.result != first.result


async def test_a_database_connection_that_aged_while_its_thread_was_idle_is_not_used_again(
    monkeypatch,
):
    """CONN_MAX_AGE holds between tasks, too."""
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0.1)
    async with working(concurrency=1):
        first = await run_one(sample_tasks.backend_pid)
        await asyncio.sleep(0.15)  # its age is the fact
        second = await run_one(sample_tasks.backend_pid)
    assert first.result != second.result


@pytest.mark.parametrize("task", [sample_tasks.backend_pid, sample_tasks.abackend_pid])
async def test_database_connections_of_tasks_do_not_pile_up(task):
    """Twenty tasks leave none behind."""
    async with working(concurrency=4):
        pids = {int((await run_one(task)).result) for _ in range(20)}

        async def gone() -> bool:
            rows = await fetch(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s)", list(pids)
            )
            return rows == [(0,)]

        await aeventually(gone)


async def test_a_worker_is_seen_at_once_and_its_end_is_recorded():
    """In the table of workers, under an id that is new each time."""
    async with working(queues=("other", "default"), concurrency=7) as worker:

        async def seen() -> list[tuple[object, ...]]:
            return await fetch(
                "SELECT queues, concurrency, stopped_at FROM tasks_app_workerprocess WHERE id = %s",
                worker.id,
            )

        assert await aeventually(seen) == [(["other", "default"], 7, None)]
    ((_, _, stopped_at),) = await seen()
    assert stopped_at is not None


async def test_ending_finishes_what_runs_within_the_grace():
    """And claims nothing more."""
    async with working(grace_seconds=30.0, concurrency=1) as worker:
        running = await sample_tasks.wait_at.aenqueue("last")
        await aeventually(lambda: sample_tasks.seen["started last"])
        waiting = await sample_tasks.add.aenqueue(1)
        worker.stop()
        ending = asyncio.create_task(worker.shut_down())
        await aeventually(lambda: worker.claimer._retired)
        sample_tasks.gates["last"].set()
        await ending
        assert (await look(running)).status is Status.SUCCESS
        assert (await look(waiting)).status is Status.PENDING


@pytest.mark.parametrize("hurry", [True, False])
async def test_ending_releases_what_does_not_finish(hurry):
    """When the grace is over, or at once when asked again. It is no failure, and can be claimed at once."""
    async with working(grace_seconds=3600.0 if hurry else 0.0) as worker:
        handles = [
            await sample_tasks.wait_at.aenqueue("never"),
            await sample_tasks.sleep.aenqueue(60, "sleeper"),
        ]
        await aeventually(lambda: worker.held.running == 2)
        await aeventually(lambda: sample_tasks.seen["started sleeper"])
        worker.stop()
        ending = asyncio.create_task(worker.shut_down())
        if hurry:
            worker.stop()
        await ending
        assert sample_tasks.seen["sleeper"] == ["cancelled"]
        assert worker.executor.stragglers == 1
    for handle in handles:
        ((status, ready, failures, attempt),) = await fetch(
            "SELECT status, ready, failures, attempt FROM tasks_app_task WHERE id = %s", handle.id
        )
        assert (status, ready, failures, attempt) == ("PENDING", True, 0, 1)
        assert (await history(handle))[-1][1] == "released"


async def test_a_task_that_nobody_knows_fails_and_names_the_remedy():
    """After its attempts: during a deployment another worker may know it."""
    new = sample_tasks.add.prepare((1,), {})
    unknown = replace(new, name="sample.gone", max_attempts=1)
    await (await loop_pool()).run(store.enqueue([unknown]))
    async with working():
        snapshot = await ended(unknown.id)
        assert (await run_one(sample_tasks.add, 1)).status is Status.SUCCESS
    assert (snapshot.status, snapshot.error_type) == (Status.FAILED, "UnknownTask")
    assert "TASK_MODULES" in snapshot.error_message
