"""Owners take turns, and limits of running tasks are exact."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from uuid import uuid4

import pytest

from tasks_app import store
from tasks_app.claiming.claim import take
from tasks_app.claiming.turns import Turns
from tasks_app.models import Task
from tasks_app.models.task import new_task_id
from tasks_app.store import Lane, NewTask, claim, enqueue, lanes
from tasks_app.store.driver import run
from tasks_app.store.pool import loop_pool
from tests import sample_tasks
from tests.integration.claiming import claim_now
from tests.support import aeventually
from tests.workers import fetch, working


def new(owner: str, name: str = "sample.add", args: str = "[1]", queue: str = "default") -> NewTask:
    return NewTask(new_task_id(), name, queue, owner, 0, args, "{}", 3, 60.0)


def fill(owner: str, count: int, **facts: str) -> None:
    run(enqueue([new(owner, **facts) for _ in range(count)]))


async def enqueue_all(owner: str, count: int, **facts: str) -> None:
    await (await loop_pool()).run(enqueue([new(owner, **facts) for _ in range(count)]))


@pytest.mark.django_db
class TestLanes:
    """Who has ready tasks."""

    def test_each_owner_of_each_queue_is_found_once_however_much_it_has(self):
        """By one descent of the index each."""
        for queue in ("mail", "pdf"):
            for owner in ("", "a", "b"):
                fill(owner, 20, queue=queue)
        found = run(lanes(None))
        assert sorted(found) == [Lane(q, o) for q in ("mail", "pdf") for o in ("", "a", "b")]
        assert run(lanes(["pdf"])) == [Lane("pdf", "a"), Lane("pdf", "b"), Lane("pdf", "")]
        assert {lane.queue for lane in run(lanes(None, ["pdf"]))} == {"mail"}

    @pytest.mark.parametrize(
        ("seen", "order"),
        [("a", "bca"), ("b", "cab"), ("c", "abc"), ("bb", "cab"), ("z", "abc"), ("", "abc")],
    )
    def test_it_begins_after_the_owner_seen_last_and_goes_once_round(self, seen, order):
        """Also where that owner has nothing any more."""
        for owner in "abc":
            fill(owner, 3)
        assert "".join(lane.owner for lane in run(lanes(None, seen={"default": seen}))) == order

    def test_nothing_ready_is_no_lane(self):
        """Nor is a queue that does not exist."""
        fill("a", 3)
        claim_now(3)
        assert run(lanes(None)) == []
        assert run(lanes(["default", "unheard-of"], seen={"default": "a"})) == []

    def test_more_owners_than_one_scan_gives_are_all_found_by_the_next(self, monkeypatch):
        """None is left out for having a late name."""
        monkeypatch.setattr("tasks_app.store.claiming.MOST_LANES", 4)
        for number in range(10):
            fill(f"o{number}", 1)
        turns, found = Turns(credit=1), set()
        for _ in range(3):
            scan = run(lanes(None, seen=turns.seen))
            assert len(scan) == 4
            turns.learn(scan)
            found.update(scan)
        assert len(found) == 10


@pytest.mark.django_db
class TestClaimByLane:
    """What the statement takes."""

    def test_each_lane_gives_its_most_urgent_up_to_its_quota(self):
        """And nothing of a lane that is not named."""
        for owner in "abc":
            fill(owner, 5)
        shares = [store.Share(Lane("default", "a"), 2), store.Share(Lane("default", "c"), 9)]
        taken = run(claim(uuid4(), shares, 15.0))
        assert Counter(task.owner for task in taken) == {"a": 2, "c": 5}
        first = list(Task.objects.filter(owner="a").order_by("order_key", "id")[:2])
        assert {task.id for task in taken if task.owner == "a"} == {task.id for task in first}

    def test_one_claim_serves_every_owner(self):
        """Somebody's flood does not stand in front of the others."""
        fill("flood", 500)
        fill("late", 3)
        assert Counter(task.owner for task in claim_now(6)) == {"flood": 3, "late": 3}


@pytest.mark.django_db(transaction=True)
class TestFlood:
    """One owner's flood does not become another's latency."""

    @staticmethod
    async def p95(owner: str, count: int) -> int:
        """How many tasks of anybody's ran while one of the owner's waited, for 95 % of those at most (nearest rank), once
        all have ended. Every task is as long and no slot is ever empty, so it is the wait, by a clock that goes slower
        where the machine does."""

        async def all_ended() -> bool:
            ended = "SELECT 1 FROM tasks_app_task WHERE owner = %s AND status = 'SUCCESS'"
            return len(await fetch(ended, owner)) == count

        await aeventually(all_ended)
        waits = await fetch(
            "SELECT (SELECT count(*) FROM tasks_app_task o WHERE o.started_at < t.started_at "
            "AND coalesce(o.finished_at, 'infinity') > t.run_at) AS ran_before "
            "FROM tasks_app_task t WHERE owner = %s ORDER BY ran_before",
            owner,
        )
        return waits[math.ceil(0.95 * count) - 1][0]

    async def test_twenty_tasks_beside_ten_thousand_wait_at_most_twice_as_long_as_alone(self):
        """The same worker, the same tasks; somebody else has enqueued 10,000 just before."""

        async def enqueue_twenty(owner: str) -> int:
            await enqueue_all(owner, 20, name="sample.sleep", args="[0.05]")
            worker.claimer.work_offered("default")
            return await self.p95(owner, 20)

        async with working(concurrency=2) as worker:
            alone = await enqueue_twenty("alone")
            for _ in range(10):
                await enqueue_all("flood", 1_000, name="sample.sleep", args="[0.05]")
            worker.claimer.work_offered("default")
            await aeventually(lambda: worker.held.running == 2)
            beside = await enqueue_twenty("beside")
            left = await fetch(
                "SELECT count(*) FROM tasks_app_task WHERE owner = 'flood' AND status = 'PENDING'"
            )
        assert left[0][0] > 9_000
        assert alone >= 17
        assert beside <= 2 * alone


@pytest.mark.django_db(transaction=True)
class TestLimits:
    """No more tasks run at once than the settings allow, however many claim."""

    @staticmethod
    async def claim_once(turns: Turns, places: int) -> list[store.Claimed]:
        """As a worker of its own would."""
        async with (await loop_pool()).transaction() as transaction:
            turns.learn(await transaction.run(lanes(None, seen=turns.seen)))
            return await take(transaction, turns, uuid4(), places, 15.0) or []

    @pytest.mark.parametrize(
        ("limits", "most"),
        [
            ({"MAX_RUNNING_PER_QUEUE": {"default": 7}}, 7),
            ({"MAX_RUNNING_PER_OWNER": 2}, 6),
            ({"MAX_RUNNING_PER_OWNER": 3, "MAX_RUNNING_PER_QUEUE": {"default": 4}}, 4),
        ],
    )
    async def test_many_claims_at_once_take_the_last_place_once(self, settings, limits, most):
        """Each waits for the one before it, and counts what that one took."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, **limits}
        for owner in "abc":
            await enqueue_all(owner, 20)
        claims = (self.claim_once(Turns(10), 3) for _ in range(12))
        taken = [task for batch in await asyncio.gather(*claims) for task in batch]
        assert len(taken) == most
        running = await fetch("SELECT count(*) FROM tasks_app_task WHERE status = 'RUNNING'")
        assert running[0][0] == most
        assert max(Counter(task.owner for task in taken).values()) <= limits.get(
            "MAX_RUNNING_PER_OWNER", most
        )

    async def test_without_limits_no_claim_waits_for_another(self, settings):
        """The lock is for those who asked for limits."""
        await enqueue_all("a", 4)
        pool = await loop_pool()
        async with pool.transaction() as transaction:
            await transaction.run(store.lock_claims())
            turns = Turns(10)
            turns.learn(await pool.run(lanes(None)))
            assert len(await take(pool, turns, uuid4(), 3, 15.0) or []) == 3

    async def test_two_workers_keep_a_limit_and_do_not_wait_for_a_poll(self, settings):
        """A task that ends makes room, of which workers in other processes hear as well."""
        settings.ASYNCPOLL = {
            **settings.ASYNCPOLL,
            "MAX_RUNNING_PER_QUEUE": {"default": 3},
            "WORKER_POLL_SECONDS": 3600.0,
        }
        async with working(concurrency=10) as one, working(concurrency=10) as other:
            await enqueue_all("a", 60, name="sample.crowd", args='["hall"]')
            for worker in (one, other):
                worker.claimer.work_offered("default")

            async def all_done() -> bool:
                rows = await fetch("SELECT count(*) FROM tasks_app_task WHERE status <> 'SUCCESS'")
                return rows[0][0] == 0

            await aeventually(all_done)
            assert max(sample_tasks.seen["hall"]) <= 3

    async def test_an_offer_while_there_is_no_room_is_tried_a_few_times_at_most(
        self, settings, statements
    ):
        """Every enqueue says that there is work; none of them makes room."""
        settings.ASYNCPOLL = {
            **settings.ASYNCPOLL,
            "MAX_RUNNING_PER_QUEUE": {"default": 1},
            "WORKER_POLL_SECONDS": 3600.0,
        }
        async with working(concurrency=10) as worker:
            await enqueue_all("a", 1, name="sample.sleep", args="[60]")
            worker.claimer.work_offered("default")
            await aeventually(lambda: worker.held.running == 1)
            await enqueue_all("a", 5)
            await aeventually(lambda: not worker.claimer._unsure)
            statements.clear()
            for _ in range(10):
                worker.claimer.work_offered("default")
                await aeventually(lambda: not worker.claimer._unsure)
            tried = statements.count("lock_claims")
        assert tried <= 25

    async def test_the_room_of_an_owner_is_heard_of_by_workers_of_other_queues(self, settings):
        """An owner's limit spans queues, which may have workers of their own."""
        settings.ASYNCPOLL = {
            **settings.ASYNCPOLL,
            "MAX_RUNNING_PER_OWNER": 1,
            "WORKER_POLL_SECONDS": 3600.0,
        }
        async with working(queues=("mail",)) as mail, working(queues=("pdf",)) as pdf:
            await enqueue_all("a", 1, name="sample.wait_at", args='["post"]', queue="mail")
            mail.claimer.work_offered("mail")
            await aeventually(lambda: mail.held.running == 1)
            await enqueue_all("a", 1, queue="pdf")
            pdf.claimer.work_offered("pdf")
            await aeventually(lambda: not pdf.claimer._unsure and pdf.claimer._turns)
            sample_tasks.gates["post"].set()

            async def all_done() -> bool:
                rows = await fetch("SELECT count(*) FROM tasks_app_task WHERE status <> 'SUCCESS'")
                return rows[0][0] == 0

            await aeventually(all_done)
