"""Recurring schedules: declared, ticked once by any number of processes, paused, lapsed."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tasks_app import schedules, store
from tasks_app.cron import next_tick
from tasks_app.models import Schedule, Task, TaskEvent
from tasks_app.models.task import new_task_id
from tasks_app.schedules import schedule
from tasks_app.store import Tick, dsn
from tasks_app.store.pool import Pool
from tasks_app.upkeep import Schedules, Upkeep
from tests import sample_tasks
from tests.support import aeventually
from tests.workers import fetch

pytestmark = pytest.mark.django_db(transaction=True)

TICK_LOCK = "SELECT pg_advisory_xact_lock(hashtext('asyncpoll'), hashtext('tick'))"


@pytest.fixture(autouse=True)
def _own_schedules(monkeypatch):
    monkeypatch.setattr(schedules, "_schedules", {})


@asynccontextmanager
async def ticking(kind: Callable[[Pool], Any] = Schedules) -> AsyncIterator[Any]:
    """The loop of one process, or all of upkeep, on a pool of its own."""
    pool = Pool("test")
    await pool.open()
    try:
        yield kind(pool)
    finally:
        await pool.close()


async def step(times: int = 1) -> None:
    """What a process does that starts now and goes round so often."""
    async with ticking() as loop:
        for _ in range(times):
            await loop.step()


async def make_due(ago: str = "1 s", name: str = "sample.add") -> None:
    await fetch(
        "UPDATE tasks_app_schedule SET next_tick = date_trunc('second', now() - %s::interval) WHERE name = %s",
        ago,
        name,
    )


async def row(name: str = "sample.add") -> Schedule:
    return await Schedule.objects.aget(name=name)


async def test_a_schedule_that_is_new_waits_for_its_first_tick():
    """Its row has what is to be enqueued; a deployment by itself runs nothing."""
    task = sample_tasks.add.using(owner="ann", queue="mail", priority=7, max_attempts=2, timeout=9)
    schedule(task, "30  7 * * *", timezone="Europe/Berlin", args=[1], kwargs={"b": 2}, name="sum")
    await step(2)
    found = await row("sum")
    assert (found.task, found.cron, found.timezone) == (
        "sample.add",
        "30 7 * * *",
        "Europe/Berlin",
    )
    assert (found.queue, found.owner, found.priority, found.args, found.kwargs) == (
        "mail",
        "ann",
        7,
        [1],
        {"b": 2},
    )
    assert (found.max_attempts, found.timeout_seconds) == (2, 9)
    assert (found.active, found.paused, found.last_tick) == (True, False, None)
    assert found.next_tick == next_tick("30 7 * * *", "Europe/Berlin", found.declared_at)
    assert not await Task.objects.aexists()


async def test_schedules_whose_timeouts_are_written_as_int_and_as_float_start_together():
    """A list of both can't be sent to the database."""
    schedule(sample_tasks.add.using(timeout=600), "* * * * *", args=[1], name="int")
    schedule(sample_tasks.add, "* * * * *", args=[1], name="default")
    await step()
    assert [(await row(name)).timeout_seconds for name in ("int", "default")] == [600.0, 600.0]


async def test_a_tick_enqueues_the_task_as_declared_and_workers_hear_of_it(emitted):
    """With its history, and the schedule knows its task."""
    schedule(
        sample_tasks.add.using(owner="ann", queue="mail", priority=7), "* * * * *", kwargs={"a": 4}
    )
    await step()
    await make_due("1 s")
    due = (await row()).next_tick
    with psycopg.connect(**dsn.parameters("test"), autocommit=True) as listener:
        listener.execute("LISTEN asyncpoll_work")
        await step(2)
        heard = [note.payload for note in listener.notifies(timeout=10, stop_after=1)]
    assert heard == ["queue:mail"]
    task = await Task.objects.aget()
    assert (task.name, task.queue, task.owner, task.priority, task.kwargs) == (
        "sample.add",
        "mail",
        "ann",
        7,
        {"a": 4},
    )
    assert (task.status, task.version, task.ready, task.run_at) == ("PENDING", 1, True, due)
    assert task.order_key == task.run_at - timedelta(minutes=7)
    assert [event.kind async for event in TaskEvent.objects.filter(task_id=task.id)] == ["enqueued"]
    after = await row()
    assert (after.last_tick, after.last_task) == (due, task.id)
    assert after.next_tick > task.created_at
    [told] = emitted.of("schedule.ticked")
    assert (told["name"], told["id"]) == ("sample.add", task.id)
    assert told["late_seconds"] >= 1


async def test_a_tick_is_run_once_by_twenty_processes_at_the_same_moment():
    """All of them have seen that it is due; one row moves on, in one of them."""
    schedule(sample_tasks.add, "* * * * *", args=[1])
    await step()
    for round_number in range(1, 6):
        await make_due(f"{round_number} h")
        due = (await row()).next_tick
        ready = threading.Barrier(20)
        made: list[Any] = []

        def race(due: datetime = due, ready: threading.Barrier = ready, made: list = made) -> None:
            later = next_tick("* * * * *", "UTC", datetime.now(UTC))
            call = store.tick([Tick("sample.add", due, later, new_task_id())])
            with psycopg.connect(**dsn.parameters("test"), autocommit=True) as connection:
                ready.wait(20)
                made.extend(connection.execute(call.sql.encode(), call.params).fetchall())

        threads = [threading.Thread(target=race) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1
        assert await Task.objects.acount() == round_number


async def test_a_tick_that_somebody_else_has_run_is_not_run_again():
    """However late a process comes with what it had read: the row has moved on."""
    schedule(sample_tasks.add, "* * * * *", args=[1])
    await step()
    await make_due()
    due = (await row()).next_tick
    await step(2)
    late = Tick("sample.add", due, due + timedelta(days=1), new_task_id())
    async with ticking() as loop:
        assert await loop._pool.run(store.tick([late])) == []
    assert await Task.objects.acount() == 1


async def test_ticks_that_were_missed_are_made_up_for_by_one_run():
    """After a night without a process, one run and then the next tick."""
    schedule(sample_tasks.add, "*/5 * * * *", args=[1])
    await step()
    await make_due("9 h")
    await step(3)
    assert await Task.objects.acount() == 1
    after = await row()
    assert timedelta() < after.next_tick - datetime.now(UTC) <= timedelta(minutes=5)


async def test_a_process_that_does_not_get_the_lock_tries_again_at_the_next_period():
    """Nothing is lost, and nobody waits for a lock."""
    schedule(sample_tasks.add, "* * * * *", args=[1])
    async with ticking() as loop:
        await loop.step()
        await make_due()
        with psycopg.connect(**dsn.parameters("test")) as other:
            other.execute(TICK_LOCK)
            assert 0 < await loop.step() <= 1
            assert not await Task.objects.aexists()
        await loop.step()
    assert await Task.objects.acount() == 1


async def test_many_upkeeps_at_once_run_each_tick_once(settings):
    """Five of them, a tick each second, of which none has two tasks."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WORKER_POLL_SECONDS": 0.1}
    schedule(sample_tasks.add, "* * * * * *", args=[1])

    async def enough() -> bool:
        return await Task.objects.acount() >= 3

    async with (
        ticking(Upkeep) as a,
        ticking(Upkeep) as b,
        ticking(Upkeep) as c,
        ticking(Upkeep) as d,
        ticking(Upkeep) as e,
    ):
        for upkeep in (a, b, c, d, e):
            upkeep.start()
        await aeventually(enough)
        for upkeep in (a, b, c, d, e):
            await upkeep.stop()
    ticks = [task.run_at async for task in Task.objects.order_by("run_at")]
    assert len(set(ticks)) == len(ticks)
    assert ticks[-1] == (await row()).last_tick


def test_many_processes_that_start_at_once_make_one_row_of_each_schedule():
    """In whatever order each of them declares."""
    schedule(sample_tasks.add, "* * * * *", args=[1])
    schedule(sample_tasks.aadd, "* * * * *", args=[1])
    starts = [(each, datetime.now(UTC) + timedelta(hours=1)) for each in schedules.declared()]
    ready = threading.Barrier(10)
    failed: list[Exception] = []

    def declare(order: int) -> None:
        call = store.declare_schedules(starts[::order])
        try:
            with psycopg.connect(**dsn.parameters("test"), autocommit=True) as connection:
                ready.wait(20)
                for _ in range(20):
                    connection.execute(call.sql.encode(), call.params)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=declare, args=[order]) for order in (1, -1) * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert sorted(Schedule.objects.values_list("name", flat=True)) == ["sample.aadd", "sample.add"]


async def test_a_changed_declaration_updates_the_row():
    """Other ticks start afresh; other arguments alone leave the next tick where it is."""
    schedule(sample_tasks.add, "0 5 * * *", args=[1])
    await step()
    before = await row()
    schedules._schedules.clear()
    schedule(sample_tasks.add, "0 5 * * *", args=[2])
    await make_due("2 s")
    async with ticking() as loop:
        await loop._declare(schedules.declared())
    changed = await row()
    assert (changed.pk, changed.args) == (before.pk, [2])
    assert changed.next_tick < datetime.now(UTC)
    schedules._schedules.clear()
    schedule(sample_tasks.add, "0 6 * * *", timezone="Asia/Tokyo", args=[2])
    await step(2)
    changed = await row()
    assert (changed.cron, changed.timezone) == ("0 6 * * *", "Asia/Tokyo")
    assert changed.next_tick > datetime.now(UTC)
    assert not await Task.objects.aexists()


async def test_a_schedule_that_was_removed_makes_no_more_tasks_and_is_deactivated(
    monkeypatch, emitted
):
    """A process that does not declare it leaves it alone, and one day says so; if it comes back, it starts afresh."""
    schedule(sample_tasks.add, "* * * * *", args=[1])
    await step()
    await make_due("1 h")
    removed = schedules.declared()
    schedules._schedules.clear()
    await step(2)
    assert not await Task.objects.aexists()
    assert (await row()).active

    async with ticking() as loop:
        await loop.step()
        monkeypatch.setattr("tasks_app.upkeep.schedules._KEEP_SECONDS", 0.0)
        loop._keep_at = 0.0
        await fetch("UPDATE tasks_app_schedule SET declared_at = now() - interval '6 min'")
        await loop.step()
        assert (await row()).active, "others may be about to start"
        loop._started_at -= 301
        await loop.step()
        assert not (await row()).active
        assert emitted.of("schedules.lapsed") == [{"names": ["sample.add"]}]

    schedules._schedules.update({each.name: each for each in removed})
    await step(2)
    back = await row()
    assert back.active
    assert back.next_tick > datetime.now(UTC)
    assert not await Task.objects.aexists()


async def test_a_process_that_was_taken_for_gone_declares_again(monkeypatch):
    """Its word was late, or somebody deleted the row."""
    schedule(sample_tasks.add, "* * * * *", args=[1])
    async with ticking() as loop:
        await loop.step()
        await Schedule.objects.all().adelete()
        loop._keep_at = 0.0
        await loop.step()
        assert (await row()).active
        await Schedule.objects.aupdate(active=False)
        loop._keep_at = 0.0
        await loop.step()
        assert (await row()).active


async def test_a_living_process_keeps_its_schedules(monkeypatch):
    """Its word is renewed, unless somebody's is fresh."""
    schedule(sample_tasks.add, "* * * * *", args=[1])
    async with ticking() as loop:
        await loop.step()
        fresh = (await row()).declared_at
        loop._keep_at = 0.0
        await loop.step()
        assert (await row()).declared_at == fresh
        await fetch("UPDATE tasks_app_schedule SET declared_at = now() - interval '6 min'")
        loop._keep_at, loop._started_at = 0.0, loop._started_at - 301
        await loop.step()
        assert (await row()).declared_at >= fresh
        assert (await row()).active


async def test_the_ticks_of_a_paused_schedule_pass_without_a_task():
    """When it is resumed none of them is made up for."""
    schedule(sample_tasks.add, "* * * * *", args=[1])
    async with ticking() as loop:
        await loop.step()
        assert await loop._pool.run(store.pause_schedule((await row()).pk, paused=True))
        assert not await loop._pool.run(store.pause_schedule((await row()).pk, paused=True))
        await make_due("3 h")
        await loop.step()
        passed = await row()
        assert (passed.last_tick, passed.last_task) == (None, None)
        assert passed.next_tick > datetime.now(UTC)
        await loop._pool.run(store.pause_schedule(passed.pk, paused=False))
        await loop.step()
        assert not await Task.objects.aexists()
        await make_due()
        await loop.step()
    assert await Task.objects.acount() == 1


async def test_a_row_that_this_release_does_not_understand_leaves_the_others_alone(emitted):
    """Another release may have declared it so, and ticks it."""
    schedule(sample_tasks.add, "* * * * *", args=[1])
    schedule(sample_tasks.aadd, "* * * * *", args=[1])
    async with ticking() as loop:
        await loop.step()
        await fetch("UPDATE tasks_app_schedule SET cron = '@new' WHERE name = 'sample.aadd'")
        await make_due()
        await make_due(name="sample.aadd")
        await loop.step()
    assert [task.name async for task in Task.objects.all()] == ["sample.add"]
    assert [told["name"] for told in emitted.of("schedule.strange")] == ["sample.aadd"]


async def test_the_loop_sleeps_until_the_next_tick(settings):
    """And at most a poll, since another process may declare anew."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WORKER_POLL_SECONDS": 50.0}
    schedule(sample_tasks.add, "* * * * *", args=[1])
    async with ticking() as loop:
        assert await loop.step() <= 50
        await fetch("UPDATE tasks_app_schedule SET next_tick = now() + interval '5 s'")
        assert 4 < await loop.step() <= 5
        await fetch("UPDATE tasks_app_schedule SET next_tick = now() + interval '5 h'")
        assert await loop.step() == 50
        await fetch("UPDATE tasks_app_schedule SET next_tick = now(), cron = '* * * * * *'")
        assert 0 < await loop.step() <= 1, "the tick after the one that was just run"


async def test_no_statement_is_compiled_however_dear_it_is_thought_to_be():
    """Half of a table of three schedules is read faster in rows than by an index, which the planner is told to avoid."""
    async with ticking() as loop:
        call = store.keep_schedules(["sample.add"], 1.0, 1.0)
        async with loop._pool.transaction() as transaction:
            explained = await explain(transaction, call)
    assert "JIT" not in explained


async def explain(transaction: Any, call: store.Call[Any]) -> str:
    sql, values = call.positional
    cursor = psycopg.AsyncRawCursor(transaction._connection)
    await cursor.execute(b"EXPLAIN (ANALYZE) " + sql, values)
    return "\n".join(line for (line,) in await cursor.fetchall())
