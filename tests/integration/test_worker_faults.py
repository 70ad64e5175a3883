"""Leases, fences, and databases that go away."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import UUID

import psycopg
import pytest

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.errors import StoreUnavailable
from tasks_app.store import Call, dsn
from tasks_app.store.pool import loop_pool
from tasks_app.worker import process
from tasks_app.worker.process import Worker
from tests import sample_tasks
from tests.support import aeventually
from tests.workers import ended, fetch, history, look, working

pytestmark = pytest.mark.django_db(transaction=True)

NEVER = 1e6


async def take_away(task_id: UUID) -> None:
    """Do what happens to a task whose lease ran out, in one transaction so that no loop gets between."""
    rescue = store.rescue(10, NEVER, NEVER)
    async with await psycopg.AsyncConnection.connect(**dsn.parameters("test")) as connection:
        await connection.execute(
            "SELECT pg_advisory_xact_lock(hashtext('asyncpoll'), hashtext('rescue'))"
        )
        await connection.execute(
            "UPDATE tasks_app_task SET lease_expires_at = now() - interval '1 s' WHERE id = %s",
            [task_id],
        )
        await connection.execute(rescue.sql.encode(), rescue.params)


async def make_due(task_id: UUID) -> None:
    await fetch("UPDATE tasks_app_task SET run_at = now() WHERE id = %s", task_id)


async def test_a_late_result_of_an_attempt_that_was_taken_away_is_dropped(emitted):
    """The fence drops it; the next attempt's result counts."""
    async with working():
        handle = await sample_tasks.wait_at.aenqueue("late")
        await aeventually(lambda: sample_tasks.seen["started late"] == [1])
        await take_away(handle.id)
        sample_tasks.gates["late"].set()
        await aeventually(lambda: emitted.of("task.fenced"))
        snapshot = await look(handle)
        assert (snapshot.status, snapshot.attempt) == (Status.PENDING, 1)
        await make_due(handle.id)
        snapshot = await ended(handle)
    assert (snapshot.status, snapshot.result, snapshot.attempt) == (Status.SUCCESS, "2", 2)
    assert [row[1] for row in await history(handle)] == [
        "enqueued",
        "started",
        "rescued",
        "started",
        "succeeded",
    ]


async def test_a_worker_that_lost_a_lease_stops_the_attempt(settings, emitted):
    """The heartbeat's answer does not name it any more."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "HEARTBEAT_SECONDS": 0.1}
    async with working() as worker:
        handle = await sample_tasks.sleep.aenqueue(60, "lost")
        await aeventually(lambda: sample_tasks.seen["started lost"])
        await take_away(handle.id)
        await aeventually(lambda: sample_tasks.seen["lost"] == ["cancelled"])
        assert [facts["id"] for facts in emitted.of("lease.lost")] == [handle.id]
        await aeventually(lambda: not worker.held.all())
        assert (await look(handle)).status is Status.PENDING


async def test_a_second_attempt_in_the_same_worker_stops_the_first():
    """The first sees it, and only the second counts."""
    async with working():
        handle = await sample_tasks.stop_early.aenqueue("both", "return")
        await aeventually(lambda: sample_tasks.seen["started both"] == [1])
        await take_away(handle.id)
        await make_due(handle.id)
        await aeventually(lambda: sample_tasks.seen["started both"] == [1, 2])
        await aeventually(lambda: sample_tasks.seen["both"] == ["noticed"])
        assert (await look(handle)).status is Status.RUNNING
        await (await loop_pool()).run(store.cancel(handle.id))
        snapshot = await ended(handle)
    assert (snapshot.status, snapshot.attempt) == (Status.SUCCESS, 2)


async def test_a_task_that_blocks_the_loop_keeps_its_lease(settings, emitted):
    """The heartbeat has a thread of its own; somebody else looks for expired leases all the while."""
    settings.ASYNCPOLL = {
        **settings.ASYNCPOLL,
        "LEASE_SECONDS": 1.0,
        "HEARTBEAT_SECONDS": 0.2,
    }
    done = threading.Event()
    rescued: list[object] = []

    def rescue_all_the_while() -> None:
        call = store.rescue(10, 0.0, 0.0)
        with psycopg.connect(**dsn.parameters("test"), autocommit=True) as connection:
            while not done.wait(0.05):
                rescued.extend(connection.execute(call.sql.encode(), call.params).fetchall())

    rescuer = threading.Thread(target=rescue_all_the_while)
    rescuer.start()
    try:
        async with working():
            handle = await sample_tasks.block_loop.aenqueue(2.5)
            snapshot = await ended(handle)
    finally:
        done.set()
        rescuer.join()
    assert (snapshot.status, snapshot.attempt) == (Status.SUCCESS, 1)
    assert not rescued


async def test_the_worker_goes_on_when_all_its_connections_are_ended(settings, emitted):
    """Again and again, while tasks run: each of them ends, with the right result and a history without gaps."""
    settings.ASYNCPOLL = {
        **settings.ASYNCPOLL,
        "LEASE_SECONDS": 1.0,
        "HEARTBEAT_SECONDS": 0.3,
        "RETRY_BASE_SECONDS": 0.1,
    }
    handles = []
    async with working(concurrency=4) as worker:
        for number in range(40):
            handles.append(await sample_tasks.areport.aenqueue([0.1, 0.5]))
            handles.append(await sample_tasks.sleep.aenqueue(0.05))
            if number % 8 == 0:
                ((count,),) = await fetch(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND application_name = ANY(%s)",
                    ["asyncpoll worker", "asyncpoll heartbeat", "asyncpoll worker listener"],
                )
                assert count or number
        snapshots = [await ended(handle) for handle in handles]
        await aeventually(lambda: not worker.held.all())
    assert {snapshot.status for snapshot in snapshots} == {Status.SUCCESS}
    for snapshot in snapshots:
        versions = [row[0] for row in await history(snapshot.id)]
        assert versions == list(range(1, snapshot.version + 1))


async def test_outcomes_survive_a_database_that_is_away(settings, monkeypatch, emitted):
    """They are kept and committed when it is back, by the attempt that had them."""
    async with working() as worker:
        handle = await sample_tasks.wait_at.aenqueue("outage")
        await aeventually(lambda: sample_tasks.seen["started outage"])
        real = worker._pool.run

        async def away(call):
            raise StoreUnavailable("away")

        monkeypatch.setattr(worker._pool, "run", away)
        sample_tasks.gates["outage"].set()
        await aeventually(lambda: len(emitted.of("commit.retried")) >= 2)
        assert worker.held.find(handle.id) is not None
        monkeypatch.setattr(worker._pool, "run", real)
        snapshot = await ended(handle)
    assert (snapshot.status, snapshot.attempt) == (Status.SUCCESS, 1)


def lose_the_answer_to(monkeypatch, worker: Worker, statement: str) -> None:
    """The next statement of that kind is committed, and its connection is cut before the answer arrives."""
    real = worker._pool.run
    left = [statement]

    async def run(call: Call[Any]) -> Any:
        answer = await real(call)
        if call.statement in left and answer:
            left.remove(call.statement)
            raise StoreUnavailable("cut")
        return answer

    monkeypatch.setattr(worker._pool, "run", run)


async def test_a_claim_whose_answer_is_lost_is_given_back_at_once(monkeypatch, emitted):
    """Its tasks do not wait for their lease to run out, and it is nobody's failure."""
    async with working() as worker:
        running = await sample_tasks.wait_at.aenqueue("meanwhile")
        await aeventually(lambda: sample_tasks.seen["started meanwhile"])
        lose_the_answer_to(monkeypatch, worker, "claim")
        handle = await sample_tasks.aadd.aenqueue(1)
        snapshot = await ended(handle)
        assert (snapshot.status, snapshot.attempt) == (Status.SUCCESS, 2)
        assert await fetch("SELECT failures FROM tasks_app_task WHERE id = %s", handle.id) == [(0,)]
        assert (await look(running)).attempt == 1
    assert emitted.of("task.given_back") == [{"count": 1}]
    assert [row[1] for row in await history(handle)] == [
        *("enqueued", "started", "released", "started", "succeeded")
    ]


async def test_what_a_claim_took_that_never_answered_is_given_back_by_a_worker_that_stops(
    monkeypatch,
):
    """Or it would wait for its lease to run out, although nobody died."""
    monkeypatch.setattr(process, "_CLAIM_SECONDS", 0.1)
    claimed = asyncio.Event()
    async with working() as worker:
        real = worker._pool.run

        async def never_answer_a_claim(call: Call[Any]) -> Any:
            answer = await real(call)
            if call.statement == "claim" and answer:
                claimed.set()
                await asyncio.Event().wait()
            return answer

        monkeypatch.setattr(worker._pool, "run", never_answer_a_claim)
        handle = await sample_tasks.aadd.aenqueue(1)
        await claimed.wait()
    assert (await look(handle)).status is Status.PENDING
    assert [row[1] for row in await history(handle)] == ["enqueued", "started", "released"]


async def test_a_commit_whose_answer_is_lost_is_found_and_not_repeated(monkeypatch, emitted):
    """Neither the report nor the end: no version says the same twice, and no result is called dropped that counts."""
    async with working() as worker:
        lose_the_answer_to(monkeypatch, worker, "commit")
        reporting = await sample_tasks.report.aenqueue([0.5], "reported")
        await aeventually(lambda: emitted.of("commit.retried"))
        sample_tasks.gates["reported"].set()
        await ended(reporting)
        lose_the_answer_to(monkeypatch, worker, "commit")
        adding = await sample_tasks.aadd.aenqueue(1)
        await ended(adding)
        lose_the_answer_to(monkeypatch, worker, "commit")
        retrying = await sample_tasks.picky.aenqueue("ConnectionError")
        await ended(retrying)
        await aeventually(lambda: not worker.held.all())
    assert len(emitted.of("commit.retried")) == 3
    assert not emitted.of("task.fenced")
    told = [[row[1] for row in await history(task)] for task in (reporting, adding, retrying)]
    assert told == [
        ["enqueued", "started", "progress", "succeeded"],
        ["enqueued", "started", "succeeded"],
        ["enqueued", "started", "retried", "started", "succeeded"],
    ]


async def test_a_heartbeat_prolongs_what_is_held(settings):
    """In the database, and in what the committer goes by."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "HEARTBEAT_SECONDS": 0.1}
    async with working() as worker:
        handle = await sample_tasks.wait_at.aenqueue("beats")
        await aeventually(lambda: sample_tasks.seen["started beats"])
        attempt = worker.held.find(handle.id)
        before = attempt.lease_until
        await aeventually(lambda: attempt.lease_until > before)

        async def prolonged() -> bool:
            ((extended,),) = await fetch(
                "SELECT lease_expires_at > started_at + interval '15.05 s' FROM tasks_app_task WHERE id = %s",
                handle.id,
            )
            return extended

        await aeventually(prolonged)


async def test_a_heartbeat_that_fails_is_tried_again_on_a_new_connection(settings, emitted):
    """It never takes the worker down."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "HEARTBEAT_SECONDS": 0.1}
    async with working() as worker:
        for _ in range(3):
            failed = len(emitted.of("heartbeat.failed"))
            await aeventually(lambda: worker._heartbeat._connection is not None)
            await fetch(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = 'asyncpoll heartbeat'"
            )
            await aeventually(lambda failed=failed: len(emitted.of("heartbeat.failed")) > failed)
            await aeventually(lambda: worker._heartbeat._failures == 0)
        handle = await sample_tasks.aadd.aenqueue(1)
        assert (await ended(handle)).status is Status.SUCCESS


async def test_a_row_that_somebody_has_locked_holds_up_no_other_task(settings, emitted):
    """An admin's long transaction: the batch's other tasks are over meanwhile, and it is once the lock is gone."""
    async with working():
        names = ["locked", "free", "free too"]
        handles = {name: await sample_tasks.wait_at.aenqueue(name) for name in names}
        await aeventually(lambda: all(sample_tasks.seen[f"started {name}"] for name in names))
        async with await psycopg.AsyncConnection.connect(**dsn.parameters("test")) as admin:
            await admin.execute(
                "SELECT FROM tasks_app_task WHERE id = %s FOR UPDATE", [handles["locked"].id]
            )
            for name in names:
                sample_tasks.gates[name].set()
            for name in names[1:]:
                assert (await ended(handles[name])).status is Status.SUCCESS
            await aeventually(lambda: emitted.of("commit.locked"))
            assert (await look(handles["locked"])).status is Status.RUNNING
            later = await sample_tasks.aadd.aenqueue(1)
            assert (await ended(later)).status is Status.SUCCESS
        snapshot = await ended(handles["locked"])
    assert (snapshot.status, snapshot.attempt) == (Status.SUCCESS, 1)
    assert [row[1] for row in await history(snapshot.id)] == ["enqueued", "started", "succeeded"]
    assert not emitted.of("task.fenced")


@pytest.mark.parametrize("hurried", [False, True])
async def test_the_grace_is_for_writing_what_has_run_as_well(monkeypatch, emitted, hurried):
    """A database that takes no commits when a worker has to stop costs no result; unless a second signal comes."""
    monkeypatch.setattr(process, "_COMMIT_SECONDS", 0.05)
    async with working(grace_seconds=600.0) as worker:
        handle = await sample_tasks.wait_at.aenqueue("late")
        await aeventually(lambda: sample_tasks.seen["started late"])
        async with await psycopg.AsyncConnection.connect(**dsn.parameters("test")) as admin:
            await admin.execute("SELECT FROM tasks_app_task WHERE id = %s FOR UPDATE", [handle.id])
            sample_tasks.gates["late"].set()
            await aeventually(lambda: emitted.of("commit.locked"))
            worker.stop()
            ending = asyncio.create_task(worker.shut_down())
            _, waiting = await asyncio.wait({ending}, timeout=0.5)
            assert waiting
            if hurried:
                worker.stop()
                await ending
        await ending
    expected = Status.RUNNING if hurried else Status.SUCCESS
    assert (await look(handle)).status is expected


async def test_a_worker_that_is_given_up_gives_back_what_did_not_block_it():
    """An attempt that is long past its time limit is left to the rescue, or a task that blocks every worker that it gets
    would never use its attempts up."""
    async with working() as worker:
        handles = {name: await sample_tasks.wait_at.aenqueue(name) for name in ("blocks", "waits")}
        await aeventually(lambda: all(sample_tasks.seen[f"started {name}"] for name in handles))
        blocks = worker.held.find(handles["blocks"].id)
        assert blocks is not None
        assert not worker.overdue()
        blocks.started_at -= blocks.claimed.timeout_seconds + 11
        await asyncio.to_thread(worker.give_up)
        told = {name: [row[1] for row in await history(h)] for name, h in handles.items()}
    assert "released" in told["waits"]
    assert told["blocks"] == ["enqueued", "started"]
