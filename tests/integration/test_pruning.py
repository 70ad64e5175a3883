"""What ended long ago is deleted: in bounded batches, beside everybody else, with all that was kept of it."""

from __future__ import annotations

import json
import threading
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.db import connection

from tasks_app import store
from tasks_app.models import StepRecord, Task, TaskEvent, WorkerProcess
from tasks_app.models.task import new_task_id
from tasks_app.store import dsn
from tasks_app.store.pool import Pool
from tasks_app.upkeep import Pruned, Pruning, prune_now
from tests.integration.admin_support import pending, running, succeeded

DAY = 86_400.0
transactional = pytest.mark.django_db(transaction=True)


def execute(statement: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)


def age(task_id: UUID, interval: str) -> UUID:
    execute(
        "UPDATE tasks_app_task SET finished_at = now() - %s::interval WHERE id = %s",
        interval,
        task_id,
    )
    return task_id


def many(count: int, finished: str, events: int = 1) -> None:
    """So many tasks that ended then, a microsecond apart, with their history."""
    execute(
        """
        INSERT INTO tasks_app_task (
            id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback,
            message, attempt, failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at,
            finished_at, cancel_requested)
        SELECT gen_random_uuid(), 't', 'default', '', 0, 'SUCCESS', 3, '[]', '{}', '', '', '', '', 1, 0, 3, 60, false,
            now(), now(), now(), now() - %s::interval + n * interval '1 microsecond', false
        FROM generate_series(1, %s) n
        """,
        finished,
        count,
    )
    execute(
        """
        INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, message)
        SELECT id, n, 'progress', now(), 1, '' FROM tasks_app_task, generate_series(1, %s) n WHERE name = 't'
        ON CONFLICT DO NOTHING
        """,
        events,
    )


@pytest.mark.django_db
def test_what_ended_long_ago_goes_with_its_history_and_the_rest_stays() -> None:
    """What is younger, and what has not ended however old it is."""
    old, young = age(succeeded(), "31 days"), age(succeeded(), "29 days")
    StepRecord.objects.create(
        task_id=old, name="s", attempt=1, result=1, at=Task.objects.get(pk=old).created_at
    )
    runs = running().id
    waits = pending()
    execute("UPDATE tasks_app_task SET created_at = now() - interval '90 days'")
    assert prune_now(30 * DAY, 1_000) == Pruned(tasks=1, batches=1)
    assert {task.pk for task in Task.objects.all()} == {young, runs, waits}
    assert {event.task_id for event in TaskEvent.objects.all()} == {young, runs, waits}
    assert not StepRecord.objects.exists()


@transactional
def test_whoever_waits_for_a_task_is_told_that_it_is_gone() -> None:
    """As version 0, the same as when it is deleted otherwise."""
    old = age(succeeded(), "31 days")
    with psycopg.connect(**dsn.parameters("test"), autocommit=True) as listener:
        listener.execute("LISTEN asyncpoll_changed")
        prune_now(30 * DAY, 1_000)
        [heard] = [note.payload for note in listener.notifies(timeout=10, stop_after=1)]
    assert heard == f"{old.hex}:0"


@transactional
def test_fifty_thousand_tasks_go_in_batches_that_each_commit_on_their_own() -> None:
    """No transaction deletes more than a batch, so that no lock lasts longer than that takes."""
    many(50_000, "40 days", events=2)
    many(10, "1 day")
    sizes: list[int] = []
    with psycopg.connect(**dsn.parameters("test"), autocommit=True) as other:

        def seen(execute: Any, sql: str, params: Any, is_many: bool, context: Any) -> Any:
            answer = execute(sql, params, is_many, context)
            if "hashtext('prune')" in sql:
                (left,) = other.execute("SELECT count(*) FROM tasks_app_task").fetchone() or (0,)
                sizes.append(left)
            return answer

        with connection.execute_wrapper(seen):
            pruned = prune_now(30 * DAY, 1_000)
    assert (pruned.tasks, pruned.batches) == (50_000, 50)
    assert sizes == [*range(49_010, 9, -1_000), 10]
    assert (Task.objects.count(), TaskEvent.objects.count()) == (10, 10)


@transactional
def test_a_locked_task_is_left_for_the_next_round() -> None:
    """Pruning waits for nobody."""
    many(30, "40 days")
    with psycopg.connect(**dsn.parameters("test")) as other:
        (locked,) = other.execute(
            "SELECT id FROM tasks_app_task ORDER BY finished_at LIMIT 1 FOR UPDATE"
        ).fetchone()
        assert prune_now(30 * DAY, 10).tasks == 29
    assert [task.pk for task in Task.objects.all()] == [locked]
    assert prune_now(30 * DAY, 10).tasks == 1


@transactional
def test_several_can_prune_at_once() -> None:
    """Each takes other rows; together they take all, and none twice."""
    many(4_000, "40 days", events=3)
    deleted: list[int] = []

    def prune_some() -> None:
        try:
            deleted.append(prune_now(30 * DAY, 100).tasks)
        finally:
            connection.close()

    threads = [threading.Thread(target=prune_some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    prune_now(30 * DAY, 100)
    assert sum(deleted) == 4_000
    assert not Task.objects.exists()
    assert not TaskEvent.objects.exists()


@pytest.mark.django_db
def test_a_batch_reads_the_finished_index_and_no_table_as_a_whole() -> None:
    """Among 100,000 finished tasks, whether there is something to delete or not."""
    many(100_000, "10 days")
    execute("ANALYZE tasks_app_task")
    execute("ANALYZE tasks_app_taskevent")
    for older_than in (5 * DAY, 30 * DAY):
        plan = explained(store.prune(older_than, 1_000, alone=True))
        scanned = [
            (node["Node Type"], node.get("Index Name"), node["Relation Name"])
            for node in nodes(plan)
            if node.get("Relation Name", "").startswith("tasks_app_")
            and node["Node Type"] != "ModifyTable"
        ]
        assert ("Index Scan", "asyncpoll_finished", "tasks_app_task") in scanned
        assert "Seq Scan" not in {
            kind for kind, _, table in scanned if table != "tasks_app_steprecord"
        }
    orphans = explained(store.prune_orphans(0, 1_000))
    assert "Seq Scan" not in {
        node["Node Type"]
        for node in nodes(orphans)
        if node.get("Relation Name") in ("tasks_app_task", "tasks_app_taskevent")
    }


@pytest.mark.django_db
def test_history_without_its_task_is_found_and_deleted() -> None:
    """Somebody deleted tasks by hand; found by walking through ids, a batch at a time."""
    kept = [pending() for _ in range(25)]
    orphans = [new_task_id() for _ in range(17)]
    for orphan in orphans:
        execute(
            "INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, message) "
            "SELECT %s, n, 'progress', now(), 1, '' FROM generate_series(1, 3) n",
            orphan,
        )
    assert prune_now(30 * DAY, 5) == Pruned(), "they are younger than the retention"
    assert prune_now(0, 5) == Pruned(orphans=51)
    assert {event.task_id for event in TaskEvent.objects.all()} == set(kept)


@pytest.mark.django_db
def test_worker_processes_that_ended_long_ago_are_forgotten() -> None:
    """Also those that never said goodbye; one that is alive stays, whatever is asked for."""
    ages = {
        "stopped long ago": ("40 days", "40 days"),
        "stopped lately": ("40 days", "1 day"),
        "silent for long": ("40 days", None),
        "alive": ("1 s", None),
    }
    for host, (heartbeat, stopped) in ages.items():
        execute(
            "INSERT INTO tasks_app_workerprocess (id, hostname, pid, queues, concurrency, running, started_at, "
            "heartbeat_at, stopped_at) VALUES (%s, %s, 1, '[]', 1, 0, now(), now() - %s::interval, now() - %s::interval)",
            uuid4(),
            host,
            heartbeat,
            stopped,
        )
    assert prune_now(30 * DAY, 1_000).workers == 2
    assert {each.hostname for each in WorkerProcess.objects.all()} == {"stopped lately", "alive"}
    prune_now(0, 1_000)
    assert [each.hostname for each in WorkerProcess.objects.all()] == ["alive"]


async def one_round() -> None:
    """What the loop of one process does at a time."""
    pool = Pool("test")
    await pool.open()
    try:
        await Pruning(pool).step()
    finally:
        await pool.close()


@transactional
async def test_the_loop_prunes_by_the_settings(settings, emitted) -> None:
    """A backlog as well, and says what it did; where there was nothing to do it says nothing."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "RETENTION_DAYS": 2, "PRUNE_BATCH": 10}
    await sync_to_async(many)(25, "3 days")
    await sync_to_async(many)(5, "1 day")
    await one_round()
    assert await Task.objects.acount() == 5
    assert emitted.of("tasks.pruned") == [
        {
            "count": 25,
            "batches": 3,
            "orphans": 0,
            "workers": 0,
            "keys": 0,
            "deliveries": 0,
            "entries": 0,
        }
    ]
    await one_round()
    assert len(emitted.of("tasks.pruned")) == 1


@transactional
async def test_a_retention_of_0_keeps_everything(settings) -> None:
    """For ever."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "RETENTION_DAYS": 0}
    await sync_to_async(many)(5, "9000 days")
    await one_round()
    assert await Task.objects.acount() == 5


@transactional
async def test_one_process_prunes_at_a_time() -> None:
    """The others leave it to that one; somebody who says so by hand is not kept waiting."""
    await sync_to_async(many)(5, "40 days")
    with psycopg.connect(**dsn.parameters("test")) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('asyncpoll'), hashtext('prune'))")
        await one_round()
        assert await Task.objects.acount() == 5
        assert (await sync_to_async(prune_now)(30 * DAY, 1_000)).tasks == 5


def command(*arguments: str) -> str:
    """What `manage.py prunetasks` says."""
    output = StringIO()
    call_command("prunetasks", *arguments, stdout=output)
    return output.getvalue().strip()


@pytest.mark.django_db
def test_the_command_deletes_by_the_settings_or_by_the_age_that_it_is_given(settings) -> None:
    """In days, or in other units."""
    many(7, "31 days")
    many(3, "90 minutes")
    assert command("--dry-run") == "Would delete 7 tasks."
    assert command("--dry-run", "--older-than", "1h") == "Would delete 10 tasks."
    assert Task.objects.count() == 10
    assert command("--batch", "3") == (
        "Deleted 7 tasks in 3 batches, 0 history rows without a task, 0 worker processes, 0 idempotency keys, "
        "0 deliveries, 0 inbox entries."
    )
    assert command("--older-than", "0.5") == (
        "Deleted 0 tasks in 0 batches, 0 history rows without a task, 0 worker processes, 0 idempotency keys, "
        "0 deliveries, 0 inbox entries."
    )
    assert command("--older-than", "80m").startswith("Deleted 3 tasks in 1 batch, ")
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "RETENTION_DAYS": 0}
    with pytest.raises(CommandError, match="keeps everything; say --older-than AGE"):
        command()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--older-than", "soon"),
        ("--older-than", "-1"),
        ("--older-than", "1y"),
        ("--older-than", "999999999d"),
        ("--batch", "0"),
    ],
)
def test_the_command_refuses_what_it_does_not_understand(arguments) -> None:
    """With the rule and an example."""
    with pytest.raises(
        CommandError,
        match=r"is no span of time; write days|is more than 365,000 days|is not a whole number",
    ):
        command(f"{arguments[0]}={arguments[1]}")


def explained(call: store.Call[Any]) -> Any:
    """The plan of a call."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON) {call.sql}", dict(call.params))
        (plan,) = cursor.fetchone()
    return (plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"]


def nodes(plan: Any) -> Any:
    """Every node of a plan."""
    yield plan
    for part in plan.get("Plans", []):
        yield from nodes(part)
