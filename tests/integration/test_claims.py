"""POST …/queues/{queue}/claim, against a real database."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from types import SimpleNamespace

import pytest

from asyncpoll.contract import Status
from tasks_app.api.identity import Identity
from tasks_app.errors import StoreUnavailable
from tasks_app.hold import claiming, claimlimits
from tasks_app.hold.admission import admission
from tasks_app.hold.shortpolls import ShortPolls
from tasks_app.models.task import new_task_id
from tasks_app.store import NewTask, enqueue, notify, rescue
from tests import sample_tasks
from tests.external_tasks import QUEUE, anything, render
from tests.integration.api_support import is_problem
from tests.integration.executors_support import Executor, executing
from tests.support import aeventually
from tests.workers import fetch, history, look, run_one, working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def executor(service, settings) -> AsyncIterator[Executor]:
    """An executor that talks to the application, and may hurry."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_SHORT_POLLS_PER_SECOND": 1_000}
    async with executing() as made:
        yield made


async def many(count):
    """That many tasks, oldest first."""
    return [str((await anything.aenqueue(number)).id) for number in range(count)]


async def held(count=1):
    await aeventually(lambda: admission.held == count)


def ids(claim):
    return [task["task_id"] for task in claim["tasks"]]


class TestClaim:
    """What comes with a claim."""

    async def test_a_task_comes_with_all_that_its_executor_needs(self, executor):
        """Arguments, attempt, lease and deadline, and the token."""
        task = await render.using(owner="alice").aenqueue(pages=["a"], dpi=300)
        answer = await executor.claim("c1", limit=10)
        [given] = answer["tasks"]
        assert answer == {
            **answer,
            "claim_id": "c1",
            "queue": QUEUE,
            "outcome": "CLAIMED",
            "repeated": False,
            "recommended_client_backoff_ms": 0,
        }
        assert given == {
            **given,
            "task_id": str(task.id),
            "task": "sample.render",
            "queue": QUEUE,
            "owner": "alice",
            "args": [],
            "kwargs": {"pages": ["a"], "dpi": 300},
            "attempt": 1,
            "max_attempts": 3,
            "version": 2,
            "cancel_requested": False,
            "lease_seconds": 15.0,
        }
        assert given["lease_expires_at"] < given["deadline"]
        assert len(given["lease_token"]) > 60
        assert (await look(task)).status is Status.RUNNING
        assert [kind for _, kind, _, _ in await history(task)] == ["enqueued", "started"]

    async def test_no_more_than_asked_for_is_claimed_and_the_most_urgent_first(self, executor):
        """And nothing twice."""
        tasks = await many(5)
        assert ids(await executor.claim("c1", limit=2)) == tasks[:2]
        assert ids(await executor.claim("c2", limit=2)) == tasks[2:4]
        assert ids(await executor.claim("c3", limit=100)) == tasks[4:]
        empty = await executor.claim("c4")
        assert (empty["outcome"], empty["tasks"]) == ("EMPTY", [])
        assert empty["recommended_client_backoff_ms"] >= 1_000

    async def test_a_task_is_found_although_somebody_else_has_nothing_left(self, executor):
        """Who had tasks at an earlier claim does not stand in front of who has some now."""
        for number, owner in enumerate(["a", "b", "b"]):
            task = await anything.using(owner=owner).aenqueue(number)
            assert ids(await executor.claim(f"c{number}", limit=1)) == [str(task.id)]

    async def test_as_many_are_claimed_as_asked_for_however_they_are_spread_over_owners(
        self, executor
    ):
        """What one owner does not have is given by another, and the next in line is told that there is more."""
        for owner in ["a", "b", "b", "b", "b"]:
            await anything.using(owner=owner).aenqueue(1)
        assert len(ids(await executor.claim("c1", limit=4))) == 4

    async def test_another_queues_tasks_stay_where_they_are(self, executor):
        """A claim names its queue."""
        await many(1)
        assert (await executor.claim("c1", queue="default"))["tasks"] == []
        assert (await executor.claim("c1", queue="a%2Fb"))["queue"] == "a/b"

    async def test_a_worker_of_ours_leaves_external_queues_alone(self, executor, service):
        """With or without a hint."""
        [task] = await many(1)
        async with working() as worker:
            await service.pool.run(notify([QUEUE]))
            ours = await run_one(sample_tasks.aadd, 1)
            assert ours.status is Status.SUCCESS
            assert worker.held.running == 0
            assert ids(await executor.claim("c1")) == [task]


class TestHeld:
    """A claim waits until there is work."""

    async def test_it_is_woken_by_an_enqueue_on_another_connection(
        self, executor, service, monkeypatch
    ):
        """By the hint: there is no sweep here."""
        monkeypatch.setattr(service.hub.offers, "offer_all", lambda: None)
        waiting = executor.held_claim("c1")
        await aeventually(lambda: _idle(service) == 1)
        [task] = await many(1)
        answer = await waiting
        assert ids(answer) == [task]
        assert answer["hold_duration_ms"] < answer["hold_granted_ms"]
        assert admission.held == 0

    async def test_one_enqueue_wakes_one_of_many(self, executor, service, monkeypatch):
        """The first in line; the others do not even look."""
        monkeypatch.setattr(service.hub.offers, "offer_all", lambda: None)
        waits = []
        for number in range(5):
            waits.append(executor.held_claim(f"c{number}"))
            await held(number + 1)
            await aeventually(lambda number=number: _idle(service) == number + 1)
        looks = _count_looks(monkeypatch)
        [task] = await many(1)
        done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        assert [ids(wait.result()) for wait in done] == [[task]]
        assert done == {waits[0]}
        # The one that got all it asked for lets the next one look.
        assert len(looks) <= 2
        await _released(pending, service)

    async def test_a_burst_reaches_everybody_who_waits(self, executor, service, monkeypatch):
        """Each look that was worth it is followed by the next in line, without a sweep."""
        monkeypatch.setattr(service.hub.offers, "offer_all", lambda: None)
        waits = [executor.held_claim(f"c{number}") for number in range(5)]
        await aeventually(lambda: _idle(service) == 5)
        new = [anything.prepare([number], {}) for number in range(5)]
        await service.pool.run(enqueue(new))
        await service.pool.run(notify([QUEUE]))
        answers = await asyncio.gather(*waits)
        assert sorted(task for answer in answers for task in ids(answer)) == sorted(
            str(task.id) for task in new
        )

    async def test_work_that_no_hint_told_of_is_found_all_the_same(self, executor, service):
        """A lost notification costs a second."""
        waiting = executor.held_claim("c1")
        await aeventually(lambda: _idle(service) == 1)
        new = anything.prepare([], {})
        await service.pool.run(enqueue([new]))
        assert ids(await waiting) == [str(new.id)]

    async def test_it_runs_out(self, executor):
        """An empty answer, and a short pause before the next."""
        answer = await executor.claim("c1", max_hold_seconds=0.2)
        assert (answer["outcome"], answer["tasks"]) == ("EMPTY", [])
        assert answer["recommended_client_backoff_ms"] <= 150

    async def test_a_client_that_hangs_up_leaves_nothing_behind(self, executor, service):
        """Neither a place in line nor a claim."""
        waiting = executor.held_claim("c1")
        await aeventually(lambda: _idle(service) == 1)
        waiting.cancel()
        await aeventually(lambda: (admission.held, service.hub.offers.waiting) == (0, 0))
        [task] = await many(1)
        assert (await look(uuid.UUID(task))).status is Status.PENDING

    async def test_draining_answers_it_and_hands_out_nothing_more(self, executor, service):
        """The executor asks elsewhere, with the same claim id."""
        waiting = executor.held_claim("c1")
        await aeventually(lambda: _idle(service) == 1)
        try:
            admission.begin_drain()
            assert (await waiting)["outcome"] == "DRAINING"
            await many(1)
            late = await executor.claim("c2")
            assert (late["outcome"], late["tasks"]) == ("DRAINING", [])
            assert late["recommended_client_backoff_ms"] >= 250
        finally:
            admission.draining = False

    async def test_a_crowded_process_gives_what_there_is_and_holds_nobody(self, executor):
        """SHED, with a longer backoff."""
        [task] = await many(1)
        admission.limit_to(1)
        try:
            waiting = executor.held_claim("c1", queue="elsewhere-2")
            await held()
            assert ids(await executor.claim("c2", max_hold_seconds=25)) == [task]
            shed = await executor.claim("c3", max_hold_seconds=25)
            assert (shed["outcome"], shed["hold_granted_ms"]) == ("SHED", 0)
            assert shed["recommended_client_backoff_ms"] >= 2_000
        finally:
            admission._ceiling = None
            waiting.cancel()
            await held(0)


def _idle(service):
    return sum(len(lane.idle) for lane in service.hub.offers._lanes.values())


def _count_looks(monkeypatch):
    looks, take = [], claiming._take

    async def counted(pool, asked):
        looks.append(asked.claim)
        return await take(pool, asked)

    monkeypatch.setattr(claiming, "_take", counted)
    return looks


async def _released(waits, service):
    for wait in waits:
        wait.cancel()
    await aeventually(lambda: service.hub.offers.waiting == 0)


class TestLimits:
    """What a loop comes to."""

    @pytest.fixture(autouse=True)
    def five_a_second(self, executor, settings, monkeypatch):
        """As it is by default, by a clock that stands still."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_SHORT_POLLS_PER_SECOND": 5}
        self.now = 0.0
        monkeypatch.setattr(claimlimits, "short_polls", ShortPolls(lambda: self.now))

    async def claims(self, executor, count, claim_id="c{}", **body):
        """So many requests one after the other; those that were refused, and the status of each."""
        answers = []
        for number in range(count):
            body = {"max_hold_seconds": 0, **body, "claim_id": claim_id.format(number)}
            answers.append(await executor.post(f"/queues/{QUEUE}/claim", body))
        refused = [answer for answer in answers if answer.status_code == 429]
        return refused, [answer.status_code for answer in answers]

    async def test_claims_that_are_not_held_and_find_nothing_are_refused_without_a_look(
        self, executor, monkeypatch
    ):
        """Five at once and five a second; who holds is not refused for that."""
        looks = _count_looks(monkeypatch)
        refused, codes = await self.claims(executor, 8)
        assert codes == [200] * 5 + [429] * 3
        assert len(looks) == 5
        is_problem(refused[0], 429, "too-many-requests")
        assert "send max_hold_seconds=25" in refused[0].json()["detail"]
        assert refused[0].headers["retry-after"] == "1"
        assert (await executor.claim("held", max_hold_seconds=0.25))["outcome"] == "EMPTY"
        self.now += 0.2
        assert (await self.claims(executor, 2))[1] == [200, 429]
        assert (
            await executor.post("/queues/another/claim", {"claim_id": "c", "max_hold_seconds": 0})
        ).status_code == 200

    async def test_claims_that_are_sent_together_are_counted_before_the_look(
        self, executor, monkeypatch
    ):
        """A hundred at once are five looks."""
        looks = _count_looks(monkeypatch)
        await asyncio.gather(*(self.claims(executor, 1, f"c{number}") for number in range(100)))
        assert len(looks) == 5

    async def test_claims_that_bring_tasks_are_not_counted(self, executor):
        """However fast they come."""
        await many(12)
        assert (await self.claims(executor, 12))[1] == [200] * 12

    async def test_a_claim_that_is_repeated_on_and_on_is_refused_also_if_it_may_be_held(
        self, executor, monkeypatch
    ):
        """It is answered at once each time."""
        await many(1)
        looks = _count_looks(monkeypatch)
        refused, codes = await self.claims(executor, 9, "same", max_hold_seconds=25)
        assert codes == [200] * 6 + [429] * 3
        assert len(looks) == 6
        assert "a claim_id of its own" in refused[0].json()["detail"]

    async def test_claims_that_hang_up_at_once_are_a_loop_too(self, executor, monkeypatch):
        """Each would have been looked for."""
        monkeypatch.setattr(claimlimits, "time", SimpleNamespace(monotonic=lambda: self.now))
        for number in range(5):
            waiting = executor.held_claim(f"hasty{number}")
            await held()
            waiting.cancel()
            await held(0)
        assert (await self.claims(executor, 1, "c", max_hold_seconds=25))[1] == [429]
        self.now += 0.2
        waiting = executor.held_claim("patient")
        await held()
        self.now += 0.2
        waiting.cancel()
        await held(0)
        assert (await self.claims(executor, 1, "c"))[1] == [200]


class TestRepeated:
    """The same claim_id again is the same claim again."""

    async def test_a_claim_whose_answer_was_cut_off_gives_the_same_tasks_and_tokens(self, executor):
        """Nothing is claimed a second time."""
        await many(3)
        first = await executor.claim("c1", limit=2)
        again = await executor.claim("c1", limit=2)
        assert again["repeated"]
        assert ids(again) == ids(first)
        assert [task["lease_token"] for task in again["tasks"]] == [
            task["lease_token"] for task in first["tasks"]
        ]
        assert [task["attempt"] for task in again["tasks"]] == [1, 1]
        assert len(ids(await executor.claim("c2", limit=3))) == 1

    async def test_a_client_that_vanished_during_the_claim_finds_its_tasks(
        self, executor, monkeypatch
    ):
        """It is cancelled after the commit, before the answer."""
        [task] = await many(1)
        committed, take = asyncio.Event(), claiming._take

        async def slow(pool, asked):
            taken = await take(pool, asked)
            committed.set()
            await asyncio.sleep(0)
            return taken

        monkeypatch.setattr(claiming, "_take", slow)
        cut_off = asyncio.ensure_future(executor.claim("c1"))
        await committed.wait()
        cut_off.cancel()
        answer = await executor.claim("c1")
        assert (ids(answer), answer["repeated"]) == ([task], True)

    async def test_two_racing_requests_of_one_claim_get_the_same_tasks(self, executor):
        """However they meet: no task is claimed for nobody."""
        for number in range(20):
            tasks = await many(4)
            one, two = await asyncio.gather(
                executor.claim(f"c{number}", limit=4), executor.claim(f"c{number}", limit=4)
            )
            assert ids(one) == ids(two) == tasks
            assert sorted([one["repeated"], two["repeated"]]) == [False, True]

    async def test_two_racing_claims_share_the_tasks_out(self, executor):
        """No task is given to both."""
        for number in range(20):
            [task] = await many(1)
            claims = await asyncio.gather(
                executor.claim(f"a{number}"), executor.claim(f"b{number}")
            )
            assert sorted(ids(claim) for claim in claims) == [[], [task]]

    async def test_two_held_requests_of_one_claim_get_the_same_tasks(self, executor, service):
        """A client that gave up on one of them too early."""
        waits = [executor.held_claim("c1") for _ in range(2)]
        await aeventually(lambda: _idle(service) == 2)
        [task] = await many(1)
        answers = await asyncio.gather(*waits)
        assert [ids(answer) for answer in answers] == [[task], [task]]

    async def test_what_is_over_is_not_given_again_nor_replaced(self, executor):
        """A late copy of the request must not take tasks that nobody would run."""
        await many(3)
        first = await executor.claim("c1", limit=2)
        await executor.stepped(first["tasks"][0], status="SUCCESS", result=1)
        again = await executor.claim("c1", limit=2)
        assert ids(again) == ids(first)[1:]
        await executor.stepped(first["tasks"][1], status="SUCCESS", result=1)
        last = await executor.claim("c1", limit=2, max_hold_seconds=25)
        assert (last["tasks"], last["outcome"], last["repeated"]) == ([], "CLAIMED", True)
        assert last["recommended_client_backoff_ms"] >= 1_000

    async def test_a_claim_ends_with_its_leases(self, executor, service):
        """Then its tasks are others', and its id is free for a new claim."""
        [task] = await many(1)
        first = await executor.claim("c1")
        await _let_leases_run_out()
        assert [ended.status for ended in await service.pool.run(rescue(10, 1.0, 2.0))] == [
            Status.FAILED
        ]
        assert (await executor.step(first["tasks"][0], progress=0.5)).status_code == 409
        [another] = await many(1)
        assert ids(await executor.claim("c1")) == [another]
        assert task != another

    async def test_a_claim_that_holds_a_task_lasts_as_long_as_that(self, executor):
        """Its first lease is long over; its steps have kept it."""
        [task] = await many(1)
        await executor.claim("c1")
        await fetch("UPDATE tasks_app_claim SET expires_at = now() - interval '1 hour'")
        again = await executor.claim("c1")
        assert (ids(again), again["repeated"]) == ([task], True)

    async def test_claims_long_over_are_forgotten(self, executor):
        """The table stays as small as what is going on."""
        await many(40)
        for number in range(30):
            await executor.claim(f"c{number}")
        await fetch("UPDATE tasks_app_claim SET expires_at = now() - interval '2 hours'")
        for number in range(30, 32):
            await executor.claim(f"c{number}")
        [[left]] = await fetch("SELECT count(*) FROM tasks_app_claim")
        assert left == 2

    async def test_a_claim_on_which_nothing_was_found_is_not_kept(self, executor):
        """The id is still new."""
        assert (await executor.claim("c1"))["tasks"] == []
        [task] = await many(1)
        answer = await executor.claim("c1")
        assert (ids(answer), answer["repeated"]) == ([task], False)


async def _let_leases_run_out():
    await fetch(
        "UPDATE tasks_app_task SET lease_expires_at = now() - interval '2 seconds' WHERE status = 'RUNNING'"
    )
    await fetch("UPDATE tasks_app_claim SET expires_at = now() - interval '2 seconds'")


class TestRefused:
    """Clear problem documents, and nothing claimed."""

    @pytest.mark.parametrize(
        ("body", "parameter"),
        [
            ({}, "claim_id"),
            ({"claim_id": ""}, "claim_id"),
            ({"claim_id": 7}, "claim_id"),
            ({"claim_id": "c" * 256}, "claim_id"),
            ({"claim_id": "c", "limit": 0}, "limit"),
            ({"claim_id": "c", "limit": 101}, "limit"),
            ({"claim_id": "c", "limit": "1"}, "limit"),
            ({"claim_id": "c", "limit": True}, "limit"),
            ({"claim_id": "c", "max_hold_seconds": -1}, "max_hold_seconds"),
            ({"claim_id": "c", "max_hold_seconds": "25"}, "max_hold_seconds"),
            ({"claim_id": "c", "queue": "other"}, "queue"),
            ([], "body"),
        ],
    )
    async def test_a_body_that_breaks_a_rule(self, executor, body, parameter):
        """422, naming what."""
        await many(1)
        response = await executor.post(f"/queues/{QUEUE}/claim", body)
        document = response.json()
        assert (response.status_code, document["type"]) == (422, "/problems/invalid-body")
        assert document["parameter"] == parameter
        assert ids(await executor.claim("fine", limit=10))

    async def test_a_hold_that_is_too_long_is_clamped_and_reported(self, executor):
        """As everywhere."""
        await many(1)
        answer = await executor.claim("c1", max_hold_seconds=1e9)
        assert answer["hold_granted_ms"] <= 25_000

    @pytest.mark.parametrize("queue", ["q" * 201, "a%00b", "a%07b"])
    async def test_a_queue_that_can_not_be_one(self, executor, queue):
        """400."""
        response = await executor.post(f"/queues/{queue}/claim", {"claim_id": "c"})
        assert (response.status_code, response.json()["parameter"]) == (400, "queue")

    async def test_other_methods_and_bodies_that_are_not_json(self, executor):
        """405 with Allow, 415, 400."""
        path = f"/api/v1/queues/{QUEUE}/claim"
        client = executor._client
        refused = await client.get(path)
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST, OPTIONS")
        assert (await client.post(path, content=b"{}")).status_code == 415
        json_type = {"Content-Type": "application/json"}
        assert (await client.post(path, content=b"{", headers=json_type)).status_code == 400

    async def test_a_database_that_is_away_is_503_and_the_claim_can_be_repeated(
        self, executor, monkeypatch
    ):
        """Nothing was claimed."""
        [task] = await many(1)

        async def away(pool, asked):
            raise StoreUnavailable("away")

        with monkeypatch.context() as patched:
            patched.setattr(claiming, "_take", away)
            response = await executor.post(f"/queues/{QUEUE}/claim", {"claim_id": "c1"})
        assert (response.status_code, response.headers["retry-after"]) == (503, "2")
        assert ids(await executor.claim("c1")) == [task]


# By owner: what it had.
_FORMER: dict[str, str] = {}


def _with_scopes(request):
    owner, _, scopes = request.headers["Authorization"].partition(" ")
    return Identity(owner, frozenset(scopes.split()) - {_FORMER.get(owner)})


class TestScopes:
    """`claim:<queue>`, and nothing less."""

    @pytest.fixture(autouse=True)
    def _credentials(self, settings):
        path = f"{__name__}._with_scopes"
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False, "AUTHENTICATE": path}

    async def ask(self, executor, credentials, claim_id="c1"):
        return await executor.post(
            f"/queues/{QUEUE}/claim",
            {"claim_id": claim_id, "max_hold_seconds": 0},
            headers={"Authorization": credentials} if credentials else {},
        )

    async def test_the_scope_of_that_queue_is_needed(self, executor):
        """Neither another queue's nor every other scope will do."""
        await many(1)
        for scopes in ("claim:other", "submit read cancel notify metrics", "claim:"):
            response = await self.ask(executor, f"bob {scopes}")
            assert response.status_code == 403
            assert f"claim:{QUEUE}" in response.json()["detail"]
        response = await self.ask(executor, f"bob claim:{QUEUE}")
        assert len(response.json()["tasks"]) == 1

    async def test_a_held_claim_whose_scope_was_taken_away_takes_nothing(
        self, executor, service, monkeypatch
    ):
        """403, and the next in line gets the task, without a sweep: none is taken for nobody."""
        monkeypatch.setattr("tasks_app.api.identity._FRESH_SECONDS", 0.0)
        monkeypatch.setattr(service.hub.offers, "offer_all", lambda: None)
        scope = f"claim:{QUEUE}"
        waits = []
        for owner in ("bob", "eve"):
            waits.append(
                asyncio.ensure_future(
                    executor.post(
                        f"/queues/{QUEUE}/claim",
                        {"claim_id": "c1"},
                        headers={"Authorization": f"{owner} {scope}"},
                    )
                )
            )
            await aeventually(lambda: _idle(service) == len(waits))
        monkeypatch.setitem(_FORMER, "bob", scope)
        [task] = await many(1)
        bobs, eves = await asyncio.gather(*waits)
        assert (bobs.status_code, ids(eves.json())) == (403, [task])
        assert eves.json()["tasks"][0]["attempt"] == 1

    async def test_somebody_elses_claim_of_the_same_name_is_another_claim(self, executor):
        """Its tokens are not given out to whoever guesses a claim_id."""
        tasks = await many(2)
        answers = [await self.ask(executor, f"{owner} claim:{QUEUE}") for owner in ("bob", "eve")]
        assert [ids(answer.json()) for answer in answers] == [tasks[:1], tasks[1:]]


async def test_a_task_stored_by_another_version_of_the_code_can_be_claimed(executor, service):
    """Nothing about a claimed task has to be declared here."""
    new = NewTask(new_task_id(), "gone.task", QUEUE, "", 0, "[]", json.dumps({"a": 1}), 3, 600.0)
    await service.pool.run(enqueue([new]))
    task = await executor.claim_one()
    assert (task["task"], task["kwargs"]) == ("gone.task", {"a": 1})
    assert (await executor.stepped(task, status="FAILED", error="x"))["status"] == "PENDING"
