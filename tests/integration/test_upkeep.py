"""Upkeep: the work of one process at a time, in whichever process there is."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID

import psycopg
import pytest
from asgiref.sync import sync_to_async

from tasks_app import store
from tasks_app.models import Task
from tasks_app.serving.wiring import process_wiring
from tasks_app.store import dsn
from tasks_app.store.pool import close_loop_pool
from tasks_app.upkeep import start_upkeep, stop_upkeep
from tests.integration.admin_support import pending, running
from tests.support import aeventually
from tests.workers import fetch

pytestmark = pytest.mark.django_db(transaction=True)


def expired() -> UUID:
    """A RUNNING task whose worker has died."""
    task_id = running().id
    Task.objects.filter(pk=task_id).update(lease_expires_at="2020-01-01T00:00Z")
    return task_id


def overdue() -> UUID:
    """A task that was scheduled and has become due."""
    task_id = pending(queue="later")
    Task.objects.filter(pk=task_id).update(ready=False)
    return task_id


def perform(call: store.Call[Any]) -> Any:
    """Run a call on a connection of its own."""
    with psycopg.connect(**dsn.parameters("test"), autocommit=True) as connection:
        return call.shape(connection.execute(call.sql.encode(), call.params).fetchall())


@pytest.mark.parametrize("chore", ["rescue", "promote"])
def test_a_chore_is_left_to_the_process_that_has_its_lock(chore: str) -> None:
    """Nobody waits, and whoever comes after its transaction does it."""
    died, due = expired(), overdue()

    def do() -> bool:
        if chore == "rescue":
            return [task.id for task in perform(store.rescue(10, 1.0, 1.0))] == [died]
        return perform(store.promote(10))[0] == 1

    with psycopg.connect(**dsn.parameters("test")) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('asyncpoll'), hashtext(%s))", [chore])
        assert not do()
        assert Task.objects.get(pk=died).status == "RUNNING"
        assert not Task.objects.get(pk=due).ready
    assert do()


def test_chores_do_not_wait_for_each_other() -> None:
    """A long batch of one must not make another late."""
    expired()
    with psycopg.connect(**dsn.parameters("test")) as other:
        for chore in ("promote", "prune", "tick", "roll_up"):
            other.execute(
                "SELECT pg_advisory_xact_lock(hashtext('asyncpoll'), hashtext(%s))", [chore]
            )
        assert len(perform(store.rescue(10, 1.0, 1.0))) == 1


def test_many_tasks_that_are_not_due_cost_nothing() -> None:
    """Looking for what is due is a range of the index that ends at now."""
    call = store.promote(10)
    with psycopg.connect(**dsn.parameters("test")) as connection:
        connection.execute(
            """
            INSERT INTO tasks_app_task (
                id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback,
                message, attempt, failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at,
                cancel_requested)
            SELECT gen_random_uuid(), 't', 'default', '', 0, 'PENDING', 1, '[]', '{}', '', '', '', '', 0, 0, 3, 60, false,
                now(), now() + interval '1 day', now(), false
            FROM generate_series(1, 20000) n
            """
        )
        connection.execute("ANALYZE tasks_app_task")
        rows = connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) {call.sql}".encode(), call.params
        )
        (plan,) = rows.fetchone() or ((),)
        connection.rollback()
    scans = [node for node in nodes(plan[0]["Plan"]) if node.get("Index Name") == "asyncpoll_due"]
    assert len(scans) == 2, json.dumps(plan)
    assert all("run_at" in scan["Index Cond"] for scan in scans)
    assert sum(scan["Actual Rows"] for scan in scans) == 1


def nodes(plan: Any) -> Any:
    """Every node of a plan."""
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)


async def test_a_serving_process_looks_after_the_table() -> None:
    """A fleet whose executors are all outside this code base has no other."""
    died, due = await sync_to_async(expired)(), await sync_to_async(overdue)()
    before = asyncio.all_tasks()
    wiring = process_wiring()
    await wiring.start()
    try:

        async def looked_after() -> bool:
            rows = await fetch(
                "SELECT id FROM tasks_app_task WHERE failures = 1 AND id = %s OR ready AND id = %s",
                died,
                due,
            )
            return len(rows) == 2

        await aeventually(looked_after)
    finally:
        await wiring.stop()
    await aeventually(lambda: asyncio.all_tasks() <= before | {asyncio.current_task()})


async def test_upkeep_is_started_once_in_an_event_loop() -> None:
    """However often it is asked for; and stopped as often."""

    def loops() -> list[str]:
        return sorted(
            task.get_name()
            for task in asyncio.all_tasks()
            if task.get_name().startswith("asyncpoll:")
        )

    await start_upkeep()
    await start_upkeep()
    assert loops() == [
        "asyncpoll:deliveries",
        "asyncpoll:orders",
        "asyncpoll:promotion",
        "asyncpoll:pruning",
        "asyncpoll:rescue",
        "asyncpoll:rollups",
        "asyncpoll:schedules",
    ]
    await stop_upkeep()
    await stop_upkeep()
    assert loops() == []
    await close_loop_pool()
