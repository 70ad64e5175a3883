"""Rows that somebody edited into what no statement can work with: nobody else's work stops."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.store import Lane, Share
from tasks_app.store.pool import loop_pool
from tasks_app.upkeep import Rescue
from tasks_app.worker import executor
from tests import sample_tasks
from tests.external_tasks import render
from tests.integration.executors_support import executing
from tests.support import aeventually
from tests.workers import ended, fetch, history, look, working

pytestmark = pytest.mark.django_db(transaction=True)

LAST = 2**31 - 1


async def edit(task_id: UUID, column: str, value: Any) -> None:
    await fetch(f"UPDATE tasks_app_task SET {column} = %s WHERE id = %s", value, task_id)


@pytest.mark.parametrize("column", ["run_at", "created_at", "started_at"])
@pytest.mark.parametrize("value", ["infinity", "-infinity", "20000-01-01", "0005-01-01 BC"])
async def test_a_moment_that_cannot_be_read_back_is_refused(column: str, value: str) -> None:
    """Before it can fail the reading of all the rows that are read with it."""
    handle = await sample_tasks.add.aenqueue(1)
    with pytest.raises(psycopg.errors.CheckViolation, match="asyncpoll_values_sound"):
        await edit(handle.id, column, value)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-1", "1e300"])
async def test_a_time_limit_that_is_none_is_refused(value: str) -> None:
    """A heartbeat adds it to a moment, for all the tasks of a worker at once."""
    handle = await sample_tasks.add.aenqueue(1)
    with pytest.raises(psycopg.errors.CheckViolation, match="asyncpoll_values_sound"):
        await edit(handle.id, "timeout_seconds", value)


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("priority", 500, "asyncpoll_schedule_bounds"),
        ("timeout_seconds", "NaN", "asyncpoll_schedule_bounds"),
        ("next_tick", "infinity", "asyncpoll_ticks_readable"),
    ],
)
async def test_a_schedule_that_could_not_tick_is_refused(
    column: str, value: Any, rule: str
) -> None:
    """One statement ticks all schedules that are due."""
    facts = {"priority": 0, "timeout_seconds": 60, "next_tick": "2026-01-01", column: value}
    with pytest.raises(psycopg.errors.CheckViolation, match=rule):
        await fetch(
            "INSERT INTO tasks_app_schedule (name, task, cron, timezone, queue, owner, args, kwargs, max_attempts, "
            "active, declared_at, paused, priority, timeout_seconds, next_tick) "
            "VALUES ('s', 't', '* * * * *', 'UTC', 'q', '', '[]', '{}', 1, true, now(), false, %s, %s, %s)",
            *facts.values(),
        )


@pytest.mark.parametrize("column", ["version", "attempt"])
async def test_a_counter_at_its_end_fails_its_own_task_and_the_others_are_run(
    column: str, emitted: Any
) -> None:
    """Claims go by order, so that it would be in each; it is said once."""
    edited = await sample_tasks.aadd.aenqueue(1)
    await edit(edited.id, column, LAST)
    handles = [await sample_tasks.aadd.aenqueue(number) for number in range(3)]
    async with working():
        assert [(await ended(handle)).status for handle in handles] == [Status.SUCCESS] * 3
        snapshot = await ended(edited)
    assert (snapshot.status, snapshot.error_type) == (Status.FAILED, "CounterExhausted")
    assert f"{LAST}" in snapshot.error_message
    assert "somebody edited the row" in snapshot.error_message
    assert [row[1] for row in await history(edited)] == ["enqueued", "failed"]
    assert [facts["id"] for facts in emitted.of("task.unfit")] == [edited.id]
    assert not emitted.of("loop.failed")


async def test_executors_outside_get_the_tasks_behind_it(service: Any) -> None:
    """Their claim is a transaction, which begins anew."""
    edited = await render.aenqueue(pages=["a"])
    await edit(edited.id, "version", LAST)
    good = await render.aenqueue(pages=["b"])
    async with executing() as executor_outside:
        [task] = (await executor_outside.claim("one"))["tasks"]
    assert task["task_id"] == str(good.id)
    assert (await look(edited)).status is Status.FAILED


async def test_expired_leases_are_rescued_beside_rows_that_cannot_be(emitted: Any) -> None:
    """A version at its end is failed, failures that are as many as attempts stay as many."""
    handles = [await sample_tasks.add.aenqueue(number) for number in range(3)]
    pool = await loop_pool()
    await pool.run(store.claim(UUID(int=5), [Share(Lane("default", ""), 3)], 15.0))
    await fetch("UPDATE tasks_app_task SET lease_expires_at = now() - interval '5 s'")
    await edit(handles[0].id, "version", LAST)
    await edit(handles[1].id, "failures", 1)
    await Rescue(pool).step()
    rows = [await look(handle) for handle in handles]
    assert [row.status for row in rows] == [Status.FAILED, Status.PENDING, Status.PENDING]
    assert [facts["id"] for facts in emitted.of("task.unfit")] == [handles[0].id]


async def test_what_a_running_task_says_past_its_last_version_costs_only_itself(
    settings: Any, emitted: Any
) -> None:
    """Its neighbours are committed; it ends once its lease has."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "LEASE_SECONDS": 1.0, "HEARTBEAT_SECONDS": 0.2}
    async with working():
        names = ["edited", "good"]
        handles = {name: await sample_tasks.wait_at.aenqueue(name) for name in names}
        await aeventually(lambda: all(sample_tasks.seen[f"started {name}"] for name in names))
        await edit(handles["edited"].id, "version", LAST)
        for name in names:
            sample_tasks.gates[name].set()
        assert (await ended(handles["good"])).status is Status.SUCCESS
        assert (await ended(handles["edited"])).error_type == "CounterExhausted"
    assert emitted.of("commit.abandoned")


async def test_a_cancel_of_such_a_row_changes_nothing() -> None:
    """And raises nothing, so that the rest of a selection is cancelled."""
    handle = await sample_tasks.add.aenqueue(1)
    await edit(handle.id, "version", LAST)
    assert await (await loop_pool()).run(store.cancel(handle.id)) is None


@pytest.mark.parametrize(("column", "value"), [("args", '{"a": 1}'), ("kwargs", "[1]")])
async def test_arguments_of_another_shape_fail_their_own_task(column: str, value: str) -> None:
    """A claim is one batch, and its other tasks begin."""
    edited, good = await sample_tasks.aadd.aenqueue(1), await sample_tasks.aadd.aenqueue(2)
    await edit(edited.id, column, value)
    await edit(edited.id, "max_attempts", 1)
    async with working():
        assert (await ended(good)).status is Status.SUCCESS
        assert (await ended(edited)).status is Status.FAILED


async def test_a_task_whose_declaration_raises_fails_alone(monkeypatch: Any) -> None:
    """Whatever it is that it raises."""
    real = executor.find

    def find(claimed: Any) -> Any:
        if claimed.name == "sample.add":
            raise RuntimeError("half imported")
        return real(claimed)

    monkeypatch.setattr(executor, "find", find)
    strange, good = await sample_tasks.add.aenqueue(1), await sample_tasks.aadd.aenqueue(2)
    await edit(strange.id, "max_attempts", 1)
    async with working():
        assert (await ended(good)).status is Status.SUCCESS
        assert (await ended(strange)).error_message == "half imported"
