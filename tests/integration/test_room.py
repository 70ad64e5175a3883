"""Room under a limit of running tasks is used at once, however it came about and whoever stands before it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.limits import new_task_id
from tasks_app.store import Call, Lane, NewTask, Share
from tasks_app.store.pool import close_loop_pool, loop_pool
from tasks_app.store.quarantine import quarantine
from tests.external_tasks import QUEUE
from tests.integration.executors_support import executing
from tests.support import aeventually
from tests.workers import ended, fetch, working

pytestmark = pytest.mark.django_db(transaction=True)
STRANGER = uuid4()


@pytest.fixture(autouse=True)
async def limited(settings: Any) -> AsyncIterator[None]:
    """One task of an owner at once, over all queues; nobody looks again by itself."""
    settings.ASYNCPOLL = {
        **settings.ASYNCPOLL,
        "MAX_RUNNING_PER_OWNER": 1,
        "WORKER_POLL_SECONDS": 3600.0,
    }
    yield
    await close_loop_pool()


async def run(call: Call[Any]) -> Any:
    return await (await loop_pool()).run(call)


def new(owner: str, queue: str, name: str = "sample.add") -> NewTask:
    return NewTask(new_task_id(), name, queue, owner, 0, "[1]", "{}", 1, 60.0)


async def enqueue(queue: str) -> UUID:
    (task_id,) = await run(store.enqueue([new("a", queue)]))
    return task_id


async def bar(queue: str, name: str) -> UUID:
    """Many owners have no room for what they have there; one behind them all has. Gives its task."""
    barred = [f"o{number:02}" for number in range(30)]
    await run(store.enqueue([new(owner, "mail") for owner in barred]))
    shares = [Share(Lane("mail", owner), 1) for owner in barred]
    assert len(await run(store.claim(STRANGER, shares, 60.0))) == 30
    await run(store.enqueue([new(owner, queue, name) for owner in barred]))
    (task_id,) = await run(store.enqueue([new("z", queue, name)]))
    return task_id


@pytest.fixture
def few_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One look gives only three owners."""
    for module in ("store.claiming", "claiming.rounds"):
        monkeypatch.setattr(f"tasks_app.{module}.MOST_LANES", 3)


async def claim() -> None:
    assert await run(store.claim(STRANGER, [Share(Lane("mail", "a"), 1)], 15.0))


async def set_facts(task_id: UUID, facts: str) -> None:
    await fetch(f"UPDATE tasks_app_task SET {facts} WHERE id = %s", task_id)


async def rescued(task_id: UUID) -> AsyncIterator[None]:
    """Its lease ran out, and it has no attempt left."""
    await claim()
    yield
    await set_facts(task_id, "lease_expires_at = now() - interval '1 minute'")
    await run(store.rescue(10, 0.0, 0.0))


async def reported(task_id: UUID) -> AsyncIterator[None]:
    """Code outside the workers has run it."""
    await run(store.step(task_id, Status.RUNNING))
    yield
    await run(store.step(task_id, Status.SUCCESS, result="1"))


async def deleted(task_id: UUID) -> AsyncIterator[None]:
    """Somebody deletes it while it runs."""
    await claim()
    yield
    await run(store.delete([task_id]))


async def quarantined(task_id: UUID) -> AsyncIterator[None]:
    """Its counters can't grow any more."""
    await claim()
    await set_facts(task_id, "attempt = 2000000001")
    yield
    await run(quarantine())


async def given_back(_: UUID) -> AsyncIterator[None]:
    """The answer to its claim was lost."""
    await claim()
    yield
    await run(store.give_back(STRANGER, []))


async def requeued(task_id: UUID) -> AsyncIterator[None]:
    """Somebody puts it back into its queue, by hand."""
    await claim()
    yield
    await run(store.requeue(task_id))


@pytest.mark.parametrize("way", [rescued, reported, deleted, quarantined, given_back, requeued])
async def test_a_task_that_no_longer_runs_makes_room_that_other_queues_hear_of(
    way: Callable[[UUID], AsyncIterator[None]],
) -> None:
    """A worker that had no room for it runs the other task, without a poll."""
    blocking = way(await enqueue("mail"))
    await anext(blocking)
    waiting = await enqueue("pdf")
    async with working(queues=("pdf",)) as worker:
        claimer = worker.claimer
        claimer.work_offered("pdf")
        await aeventually(
            lambda: claimer._turns and not claimer._unsure and claimer._at_rest.is_set()
        )
        assert [_ async for _ in blocking] == []
        assert (await ended(waiting)).status == "SUCCESS"


async def test_an_owner_with_room_is_found_behind_any_number_that_have_none(
    few_lanes: None,
) -> None:
    """A worker looks on until it has come round, and does not wait for its polls."""
    wanted = await bar("pdf", "sample.add")
    async with working(queues=("pdf",)) as worker:
        assert (await ended(wanted)).status == "SUCCESS"
        claimer = worker.claimer
        await aeventually(lambda: not claimer._unsure and claimer._at_rest.is_set())


async def test_a_claim_from_outside_finds_an_owner_with_room_as_well(
    few_lanes: None, service: Any
) -> None:
    """At once: it is not held."""
    wanted = await bar(QUEUE, "sample.anything")
    async with executing() as executor:
        claim = await executor.claim("c1", limit=5)
    assert [task["task_id"] for task in claim["tasks"]] == [str(wanted)]
