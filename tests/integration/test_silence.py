"""A database that acknowledges what it is sent and never answers: nothing waits for it for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tasks_app.errors import StoreUnavailable
from tasks_app.store import dsn, lock_claims, ping, silence
from tasks_app.store.pool import Pool, loop_pool
from tasks_app.worker import leases
from tests import sample_tasks
from tests.fleet.proxy import Proxy
from tests.support import aeventually
from tests.workers import ended, working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Every connection of ours goes through here, and is doubted soon."""
    direct = dsn.parameters
    given = direct("test")
    place, port = str(given["host"]), given.get("port", 5432)
    proxy = Proxy(f"{place}/.s.PGSQL.{port}" if place.startswith("/") else int(port))

    def proxied(application: str) -> dict[str, Any]:
        return {**direct(application), "host": "127.0.0.1", "port": proxy.port}

    monkeypatch.setattr(dsn, "parameters", proxied)
    monkeypatch.setattr(silence, "SILENT_SECONDS", 0.4)
    monkeypatch.setattr(leases, "_ANSWER_SECONDS", 0.4)
    yield proxy
    proxy.close()


@pytest.fixture
async def pool(link: Proxy) -> AsyncIterator[Pool]:
    """A pool of one connection."""
    made = Pool("silence", size=1)
    await made.open()
    yield made
    await made.close()


async def test_a_silent_connection_is_given_up_and_the_next_works(pool, link, emitted):
    """The statement fails as in every other outage."""
    await pool.run(ping())
    link.stall()
    with pytest.raises(StoreUnavailable):
        await pool.run(ping())
    await aeventually(lambda: emitted.of("connection.silent"))
    link.mend()
    await pool.run(ping())


async def test_a_transaction_is_not_waited_for_either(pool, link):
    """Each of its statements is watched."""
    with pytest.raises(StoreUnavailable):
        async with pool.transaction() as transaction:
            await transaction.run(ping())
            link.stall()
            await transaction.run(ping())


async def test_a_statement_that_the_server_is_busy_with_is_let_finish(pool, emitted):
    """However long after the first doubt: here it waits for somebody's lock, doubted again and again."""
    other = Pool("other", size=1)
    await other.open()
    doubts: list[float] = []
    loop = asyncio.get_running_loop()
    async with other.transaction() as transaction:
        await transaction.run(lock_claims())
        waiting = asyncio.create_task(pool.run(lock_claims()))
        asked = silence._second_opinion

        async def counted(connection: Any) -> bool:
            doubts.append(loop.time())
            return await asked(connection)

        silence._second_opinion = counted  # type: ignore[assignment]
        try:
            await aeventually(lambda: len(doubts) == 3)
        finally:
            silence._second_opinion = asked
        assert not waiting.done()
    await waiting
    await other.close()
    assert not emitted.of("connection.silent")


async def test_even_a_busy_server_is_given_up_some_time(pool, link, monkeypatch):
    """A process of its that hangs says that it is active for ever."""
    monkeypatch.setattr(silence, "_LONGEST_SECONDS", 0.8)
    other = Pool("other", size=1)
    await other.open()
    async with other.transaction() as transaction:
        await transaction.run(lock_claims())
        with pytest.raises(StoreUnavailable):
            await pool.run(lock_claims())
    await other.close()


async def test_behind_a_pooler_what_can_not_be_asked_about_is_given_up_sooner(
    pool, link, monkeypatch
):
    """Others are answered there meanwhile, which says nothing of this one."""
    monkeypatch.setattr(silence, "_is_pooled", lambda connection: True)
    monkeypatch.setattr(silence, "_LONGEST_POOLED_SECONDS", 0.8)
    await pool.run(ping())
    link.stall()
    with pytest.raises(StoreUnavailable):
        await pool.run(ping())


async def test_a_pooler_that_answers_nobody_is_not_waited_for(pool, link, monkeypatch, emitted):
    """After the first doubt."""
    monkeypatch.setattr(silence, "_is_pooled", lambda connection: True)
    monkeypatch.setattr(silence, "_SECOND_OPINION_SECONDS", 0.2)
    await pool.run(ping())
    link.cut()
    with pytest.raises(StoreUnavailable):
        await pool.run(ping())
    assert emitted.of("connection.silent")[0]["silence_seconds"] == 0.4


async def test_a_worker_carries_on_when_all_its_connections_have_gone_silent(
    link, emitted, settings
):
    """Claims, commits, heartbeat and listener each find out by themselves; what it was running counts."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "HEARTBEAT_SECONDS": 0.5}
    async with working(concurrency=2) as worker:
        running = await sample_tasks.wait_at.aenqueue("gate")
        await aeventually(lambda: worker.held.running == 1)
        link.stall()
        sample_tasks.gates["gate"].set()
        await aeventually(lambda: emitted.of("heartbeat.failed"))
        await aeventually(answers)
        assert (await ended(running)).attempt == 1
        assert (await ended(await sample_tasks.add.aenqueue(1))).status == "SUCCESS"


async def answers() -> bool:
    """Our own pool has got over it."""
    with suppress(StoreUnavailable):
        await (await loop_pool()).run(ping())
        return True
    return False
