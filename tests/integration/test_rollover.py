"""What polling costs while nothing happens: no statement and no Redis command, whoever counts them."""

from __future__ import annotations

import asyncio
import re
from uuid import UUID

import psycopg
import pytest

from asyncpoll.contract import Outcome, Status
from tasks_app.hold.admission import Account, admission
from tasks_app.hold.waiting import Wait, wait
from tasks_app.models.task import new_task_id
from tasks_app.plans.book import book
from tasks_app.store import NewTask, dsn, enqueue, step
from tasks_app.store.pool import execute
from tasks_app.wakeup import listener, sweeper, trust
from tasks_app.wakeup.service import current_service, stop_service
from tests.fleet.redis_server import RedisServer
from tests.integration.api_support import API
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)
CROWD = 1_500
SOME = 100


@pytest.fixture(autouse=True)
def patient_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy for two seconds is no silence: what that costs is not looked at here."""
    monkeypatch.setattr(trust, "SILENCE_SECONDS", 60.0)
    monkeypatch.setattr(listener, "DEAF_SECONDS", 60.0)


async def several(service, count) -> list[UUID]:
    tasks = [
        NewTask(new_task_id(), "sample.add", "outside", "", 0, "[]", "{}", 3, 600.0)
        for _ in range(count)
    ]
    await service.pool.run(enqueue(tasks))
    return [task.id for task in tasks]


async def renew(tasks: list[UUID], rounds: int, seconds: float) -> None:
    """Poll for each of the tasks as often; nothing has changed."""
    for _ in range(rounds):
        answers = await asyncio.gather(
            *(wait(Wait(task, 1, seconds, None, Account(""))) for task in tasks)
        )
        assert {answer.outcome for answer in answers} == {Outcome.STILL_RUNNING}


async def test_renewing_and_short_polling_send_no_statement(client, service, settings, statements):
    """Over HTTP, on every route that holds, for a second and more of the link's own life."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_SHORT_POLLS_PER_SECOND": 10_000}
    tasks = await several(service, 20)
    await renew(tasks, 1, 0.01)
    # Read once a minute for each type, however many poll.
    await book.plan("sample.add")
    checked_out = service.pool.stats["requests_num"]
    statements.clear()
    many = "&".join(f"task={task}:1" for task in tasks)
    for hold in (0.01, 0, 0.05):
        for task in tasks:
            for path in (
                f"{task}/long_poll?client_known_version=1&max_hold_seconds={hold}",
                f"{task}/events?after=1&max_hold_seconds={hold}",
                f"long_poll?{many}&max_hold_seconds={hold}",
            ):
                body = (await client.get(f"{API}/tasks/{path}")).json()
                assert body["outcome"] == "STILL_RUNNING"
        response = await client.get(
            f"{API}/tasks/{tasks[0]}",
            headers={"If-None-Match": 'W/"v1"', "Prefer": f"wait={hold}"},
        )
        assert response.status_code == 304
    assert statements == []
    assert service.pool.stats["requests_num"] == checked_out


async def test_what_is_watched_is_read_again_together_now_and_then(
    service, statements, monkeypatch
):
    """The one exception: each REFRESH_SECONDS one statement, however many wait and renew."""
    tasks = await several(service, 100)
    await renew(tasks, 1, 0.01)
    statements.clear()
    monkeypatch.setattr(sweeper, "REFRESH_SECONDS", 0.5)
    await renew(tasks, 2, 0.5)
    assert set(statements) == {"read"}
    assert len(statements) < len(tasks) / 5


async def test_a_crowd_s_first_polls_and_its_changes_are_read_together(service, statements):
    """1,500 first polls are a handful of statements, and so is what changes at once; else it is one for each change."""
    tasks = await several(service, CROWD)
    statements.clear()
    answers = await asyncio.gather(
        *(wait(Wait(task, 0, 20.0, None, Account(""))) for task in tasks)
    )
    assert {answer.row.version for answer in answers} == {1}
    assert set(statements) == {"read"}
    assert len(statements) <= 5
    held = [asyncio.ensure_future(wait(Wait(task, 1, 20.0, None, Account("")))) for task in tasks]
    await aeventually(lambda: admission.held == CROWD)
    statements.clear()
    for task in tasks[:SOME]:
        await service.pool.run(step(task, Status.RUNNING))
    await asyncio.gather(*held[:SOME])
    assert 1 <= statements.count("read") <= SOME, "at most one for each change"
    statements.clear()
    async with await psycopg.AsyncConnection.connect(**dsn.parameters("test")) as connection:
        for task in tasks[SOME:]:
            await execute(connection, step(task, Status.RUNNING))
    answers = await asyncio.gather(*held)
    assert {answer.row.version for answer in answers} == {2}
    assert set(statements) == {"read"}
    assert len(statements) < CROWD / 10


@pytest.fixture
def redis(tmp_path):
    """Valkey."""
    server = RedisServer(tmp_path)
    server.start()
    yield server
    server.kill()


async def test_renewing_sends_no_redis_command_either(settings, redis, transactional_db):
    """What the layer is asked for is the bridge's own: one PUBLISH for each message that it numbers."""
    settings.CHANNEL_LAYERS = {
        "asyncpoll": {
            **settings.CHANNEL_LAYERS["asyncpoll"],
            "BACKEND": "tasks_app.wakeup.redis.RedisLayer",
            "CONFIG": {"hosts": [f"redis://127.0.0.1:{redis.port}"]},
        }
    }
    service = await current_service()
    try:
        await aeventually(lambda: service.hub.trust.active)
        tasks = await several(service, 100)
        await renew(tasks, 1, 0.01)
        before, numbered = commands(redis), service.hub.trust.sequence
        await renew(tasks, 10, 0.3)
        await renew(tasks, 10, 0)
        heard = service.hub.trust.sequence - numbered
        after = commands(redis)
        asked = {name: count - before.get(name, 0) for name, count in after.items()}
        asked = {name: count for name, count in asked.items() if count} | {"info": 0, "quit": 0}
        assert heard >= 1
        assert asked.pop("publish") <= heard + 1
        assert set(asked) == {"info", "quit"}
    finally:
        await stop_service()


def commands(redis: RedisServer) -> dict[str, int]:
    """How often each command was sent."""
    told = redis.ask("INFO", "commandstats")
    return {name: int(calls) for name, calls in re.findall(r"cmdstat_(\S+?):calls=(\d+)", told)}
