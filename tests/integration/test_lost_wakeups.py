"""No commit is missed, wherever between register, read and wait it falls."""

from __future__ import annotations

import asyncio
import random
import time
import uuid
from typing import Any

import psycopg
import pytest

from asyncpoll.contract import Outcome, Status
from tasks_app.errors import TaskGone, TaskNotFound
from tasks_app.hold.admission import Account
from tasks_app.hold.waiting import Wait, wait
from tasks_app.models.task import new_task_id
from tasks_app.owned import owned
from tasks_app.store import NewTask, dsn, enqueue, step
from tasks_app.store.verbs import delete
from tasks_app.wakeup.reader import Cause
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)


async def stored(service, count=1):
    tasks = [
        NewTask(new_task_id(), "sample.add", "outside", "", 0, "[]", "{}", 3, 600.0)
        for _ in range(count)
    ]
    await service.pool.run(enqueue(tasks))
    return [task.id for task in tasks]


def poll(task_id, known, seconds=20.0):
    return wait(Wait(task_id, known, seconds, None, Account("")))


class Seams:
    """Runs a commit exactly at one point of the next wait."""

    def __init__(self, service, monkeypatch, commit):
        self.service, self.monkeypatch, self.commit = service, monkeypatch, commit

    async def before_register(self):
        await self.commit()

    async def after_register_before_read(self):
        """The read is asked for when the waiter registers, and sent when the reader comes to it."""
        reader = self.service.hub.reader
        original = reader._read

        async def read(ids):
            self.monkeypatch.setattr(reader, "_read", original)
            await self.commit()
            return await original(ids)

        self.monkeypatch.setattr(reader, "_read", read)

    async def after_read_before_delivery(self):
        """The row was read, and then changed before anybody saw it."""
        reader = self.service.hub.reader
        original = reader._read

        async def read(ids):
            self.monkeypatch.setattr(reader, "_read", original)
            rows = await original(ids)
            await self.commit()
            return rows

        self.monkeypatch.setattr(reader, "_read", read)

    async def after_delivery_before_wait_goes_on(self):
        """Between the row being seen and the next turn of the event loop."""
        reader = self.service.hub.reader
        original = reader._deliver

        def deliver(batch, rows, causes):
            self.monkeypatch.setattr(reader, "_deliver", original)
            original(batch, rows, causes)
            self.task = asyncio.ensure_future(self.commit())

        self.monkeypatch.setattr(reader, "_deliver", deliver)


@pytest.mark.parametrize(
    "point",
    [
        "before_register",
        "after_register_before_read",
        "after_read_before_delivery",
        "after_delivery_before_wait_goes_on",
    ],
)
async def test_a_commit_at_any_point_of_a_wait_is_answered_by_its_hint_or_its_read(
    service, monkeypatch, point
):
    """The sweeper is stopped: were the commit missed, the hold would run out."""
    await service.sweeper.stop()
    (task_id,) = await stored(service)

    async def commit():
        await service.pool.run(step(task_id, Status.RUNNING))

    await getattr(Seams(service, monkeypatch, commit), point)()
    answer = await poll(task_id, 1)
    assert (answer.outcome, answer.row.version) == (Outcome.CHANGED, 2)
    assert answer.cause in (Cause.FIRST, Cause.HINT)


async def test_twenty_thousand_random_interleavings_of_commit_and_poll_miss_nothing(service):
    """Every answer is caused by a hint or by the wait's own first read; there is no sweep to save it."""
    await service.sweeper.stop()
    tasks, rounds = 200, 100
    ids = await stored(service, tasks)
    dice = random.Random(7)
    causes: dict[Cause, int] = {}

    async def turns(most):
        for _ in range(dice.randrange(most)):
            await asyncio.sleep(0)

    async def commit_all(task_id):
        for _ in range(rounds):
            await turns(40)
            await service.pool.run(step(task_id, Status.RUNNING))

    async def follow(task_id):
        known = 1
        while known < rounds + 1:
            await turns(40)
            answer = await poll(task_id, known)
            assert answer.outcome is Outcome.CHANGED, f"missed a change after version {known}"
            assert answer.row.version > known
            causes[answer.cause] = causes.get(answer.cause, 0) + 1
            known = answer.row.version

    async with asyncio.TaskGroup() as everybody:
        for task_id in ids:
            everybody.create_task(commit_all(task_id))
            everybody.create_task(follow(task_id))
    assert causes.keys() <= {Cause.HINT, Cause.FIRST}
    assert causes[Cause.HINT] > 1_000


async def test_killing_the_listeners_backend_delays_no_answer_by_more_than_three_seconds(
    service, emitted
):
    """Under load, again and again; the link heals without a restart and leaves nothing behind."""
    ids = await stored(service, 100)
    tasks_before = len(asyncio.all_tasks())
    committed_at: dict[tuple[uuid.UUID, int], float] = {}
    lateness: list[float] = []
    stop = asyncio.Event()

    async def commit_on(task_id):
        while not stop.is_set():
            version = await service.pool.run(step(task_id, Status.RUNNING))
            committed_at[task_id, version] = time.monotonic()
            await asyncio.sleep(random.uniform(0.05, 0.4))

    async def follow(task_id):
        known = 1
        while not stop.is_set():
            answer = await poll(task_id, known, 5.0)
            if answer.row.version > known:
                lateness.append(
                    time.monotonic() - committed_at.get((task_id, known + 1), time.monotonic())
                )
            known = answer.row.version

    async with asyncio.TaskGroup() as everybody:
        for task_id in ids:
            everybody.create_task(commit_on(task_id))
            everybody.create_task(follow(task_id))
        for killed in range(1, 6):
            assert await kill_listener()
            await aeventually(lambda killed=killed: len(emitted.of("bridge.epoch")) >= killed)
            await aeventually(lambda: service.hub.trust.active)
        stop.set()
    assert len(lateness) > 100
    assert max(lateness) < 3.0
    assert len(await backends("asyncpoll listener")) == 1
    await aeventually(lambda: len(asyncio.all_tasks()) <= tasks_before)


async def test_deleting_a_task_ends_its_hold(service):
    """410 for whoever waited, 404 for whoever comes later."""
    (task_id,) = await stored(service)
    held = asyncio.ensure_future(poll(task_id, 1))
    await aeventually(lambda: service.hub.waiting == 1)
    await aeventually(lambda: next(iter(service.hub.topics.values())).snapshot)
    await service.pool.run(delete([task_id]))
    with pytest.raises(TaskGone):
        await held
    with pytest.raises(TaskNotFound):
        await poll(task_id, 1)


async def test_a_cancelled_wait_frees_its_waiter_at_once(service):
    """A client that hangs up owns nothing a moment later."""
    (task_id,) = await stored(service)
    held = [asyncio.ensure_future(poll(task_id, 1)) for _ in range(50)]
    await aeventually(lambda: service.hub.waiting == 50)
    for task in held:
        task.cancel()
    await asyncio.gather(*held, return_exceptions=True)
    assert service.hub.waiting == 0


async def test_renewed_polls_cost_no_statement(service, emitted):
    """While the link is trusted, a roll-over is answered from memory."""
    (task_id,) = await stored(service)
    await poll(task_id, 1, 0.05)
    before = len(emitted.of("reader.read"))
    for _ in range(10):
        answer = await poll(task_id, 1, 0.02)
        assert (answer.outcome, answer.row.version) == (Outcome.STILL_RUNNING, 1)
    assert len(emitted.of("reader.read")) == before


async def kill_listener() -> list[Any]:
    return await owned(
        _query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'asyncpoll listener' "
            "AND datname = current_database()"
        )
    )


async def backends(name: str) -> list[Any]:
    return await owned(
        _query(
            "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND datname = current_database()",
            name,
        )
    )


async def _query(statement: str, *parameters: str) -> list[Any]:
    async with await psycopg.AsyncConnection.connect(
        **dsn.parameters("test"), autocommit=True
    ) as connection:
        return await (await connection.execute(statement, parameters)).fetchall()
