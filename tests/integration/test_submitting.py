"""Submitting once however often it is sent, and waiting for the end with the same request."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from asyncpoll.contract import Status
from tasks_app.api import submitting
from tasks_app.errors import StoreUnavailable
from tasks_app.hold.admission import admission
from tasks_app.models import IdempotencyKey, Task, TaskEvent
from tasks_app.models.task import new_task_id
from tasks_app.store import NewTask, dsn, enqueue, keep_key, step
from tasks_app.upkeep import Pruning
from tests.integration.api_support import API, count_tasks, is_problem, mapped, stored
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)
BODY = {"task": "sample.add", "kwargs": {"a": 1}}


async def submit(
    client: httpx.AsyncClient, body: Any = BODY, key: str | None = None, **headers: str
) -> httpx.Response:
    if key is not None:
        headers["Idempotency-Key"] = key
    return await client.post(f"{API}/tasks", json=body, headers=headers)


async def age_keys(interval: str) -> None:
    async with await psycopg.AsyncConnection.connect(
        **dsn.parameters("test"), autocommit=True
    ) as connection:
        await connection.execute(
            "UPDATE tasks_app_idempotencykey SET expires_at = expires_at - %s::interval", [interval]
        )


class TestIdempotencyKeys:
    """One task for one key."""

    async def test_the_same_key_and_body_give_the_first_task(self, client):
        """200, and a header that says that nothing was stored."""
        first = await submit(client, key="order 17")
        again = await submit(client, key="order 17")
        assert (first.status_code, again.status_code) == (202, 200)
        assert first.json()["task_id"] == again.json()["task_id"]
        assert first.headers["location"] == again.headers["location"]
        assert "idempotent-replayed" not in first.headers
        assert again.headers["idempotent-replayed"] == "true"
        assert "poll_ticket" in again.json()
        assert await count_tasks() == 1

    async def test_a_replay_shows_how_the_task_stands_now(self, client, service):
        """A client that lost every answer still gets its result."""
        first = (await submit(client, key="k")).json()["task_id"]
        await service.pool.run(step(first, Status.SUCCESS, result='{"a": "' + "x" * 200_000 + '"}'))
        again = await submit(client, key="k")
        assert (again.json()["status"], len(again.json()["result"]["a"])) == ("SUCCESS", 200_000)
        assert again.headers["etag"] == 'W/"v2"'
        assert "retry-after" not in again.headers

    async def test_the_same_json_written_otherwise_is_the_same_body(self, client):
        """Order and spaces are the library's, not the client's."""
        headers = {"Idempotency-Key": "k", "Content-Type": "application/json"}
        texts = (
            '{"task":"sample.add","kwargs":{"a":1}}',
            '{ "kwargs": {"a": 1}, "task": "sample.add" }',
        )
        answers = [
            await client.post(f"{API}/tasks", content=text, headers=headers) for text in texts
        ]
        assert [answer.status_code for answer in answers] == [202, 200]

    @pytest.mark.parametrize("other", [{"a": 2}, {"a": 1, "b": 5}, {"a": 2**70}, {"a": 2**70 + 1}])
    async def test_another_body_under_the_same_key_is_refused(self, client, other):
        """422, and nothing is stored."""
        await submit(client, key="k")
        refused = await submit(client, {"task": "sample.add", "kwargs": other}, "k")
        assert "send that body, or a new key" in is_problem(refused, 422, "idempotency-key-reused")
        assert await count_tasks() == 1

    async def test_keys_are_per_owner(self, client, settings):
        """Somebody else's key says nothing, and takes nothing."""
        mapped(settings)
        answers = [
            await submit(client, key="k", Authorization=f"Test {owner}")
            for owner in ("alice", "bob", "alice")
        ]
        assert [answer.status_code for answer in answers] == [202, 202, 200]
        assert await count_tasks() == 2

    @pytest.mark.parametrize("key", ["", "x" * 256])
    async def test_a_key_of_no_or_too_many_characters_is_refused(self, client, key):
        """400, naming the header and the rule."""
        detail = is_problem(
            await submit(client, key=key), 400, "invalid-parameter", "Idempotency-Key"
        )
        assert "1 to 255 characters" in detail
        assert await count_tasks() == 0

    async def test_a_key_of_255_characters_is_taken(self, client):
        """Any characters that a header can have."""
        key = "é" * 255
        answers = [
            await client.post(
                f"{API}/tasks", json=BODY, headers={"Idempotency-Key": key.encode("latin-1")}
            )
            for _ in range(2)
        ]
        assert [answer.status_code for answer in answers] == [202, 200]

    async def test_twenty_requests_at_once_make_one_task(self, client):
        """One is the first, and all others get its task."""
        answers = await asyncio.gather(*(submit(client, key="k") for _ in range(20)))
        assert sorted(answer.status_code for answer in answers) == [200] * 19 + [202]
        assert len({answer.json()["task_id"] for answer in answers}) == 1
        assert await count_tasks() == 1
        assert await TaskEvent.objects.acount() == 1

    @pytest.mark.parametrize(("ends", "replayed"), [("COMMIT", 3), ("ROLLBACK", 2)])
    async def test_who_comes_before_the_first_has_committed_waits_for_it(
        self, client, service, ends, replayed
    ):
        """Key and task are one transaction: either both were stored by the first, or somebody else is the first."""
        await submit(client, key="k")
        kept = await IdempotencyKey.objects.aget()
        await IdempotencyKey.objects.all().adelete()
        async with await psycopg.AsyncConnection.connect(**dsn.parameters("test")) as first:
            new = NewTask(new_task_id(), "sample.add", "outside", "", 0, "[]", "{}", 3, 600.0)
            for call in (keep_key(kept.id, kept.request, new.id), enqueue([new])):
                await first.execute(call.sql_bytes, call.params)
            others = [asyncio.ensure_future(submit(client, key="k")) for _ in range(3)]
            await aeventually(lambda: waiting_inserts())
            assert not any(other.done() for other in others)
            await first.execute(ends)
        answers = await asyncio.gather(*others)
        assert sum("idempotent-replayed" in answer.headers for answer in answers) == replayed
        assert len({answer.json()["task_id"] for answer in answers}) == 1
        assert await count_tasks() == 2

    async def test_a_first_that_never_ends_takes_nobody_along(self, client, service):
        """503 for those with its key, who try again; the connections they wait on are for everybody."""
        await submit(client, key="k")
        kept = await IdempotencyKey.objects.aget()
        await IdempotencyKey.objects.all().adelete()
        async with await psycopg.AsyncConnection.connect(**dsn.parameters("test")) as frozen:
            call = keep_key(kept.id, kept.request, new_task_id())
            await frozen.execute(call.sql_bytes, call.params)
            others = await asyncio.gather(*(submit(client, key="k") for _ in range(8)))
            assert (await submit(client, key="another")).status_code == 202
            await frozen.rollback()
        for other in others:
            is_problem(other, 503, "unavailable")
            assert other.headers["retry-after"] == "2"
        assert (await submit(client, key="k")).status_code == 202

    async def test_a_key_whose_task_was_deleted_makes_no_other(self, client):
        """410: run twice would be worse."""
        task_id = (await submit(client, key="k")).json()["task_id"]
        await Task.objects.filter(id=task_id).adelete()
        assert "new key" in is_problem(await submit(client, key="k"), 410, "task-gone")

    async def test_a_key_lives_for_a_day(self, client):
        """Then it stands for another task, whether upkeep has come by or not."""
        first = await submit(client, key="k")
        await age_keys("23 hours 59 minutes")
        assert (await submit(client, key="k")).status_code == 200
        await age_keys("2 minutes")
        later = await submit(client, {"task": "sample.add", "kwargs": {"a": 2}}, "k")
        assert later.status_code == 202
        assert later.json()["task_id"] != first.json()["task_id"]
        assert (await submit(client, key="k")).status_code == 422

    @pytest.mark.parametrize("retention", [30.0, 0.0])
    async def test_upkeep_deletes_keys_that_have_expired(
        self, client, service, settings, emitted, retention
    ):
        """Also where tasks are kept for ever."""
        settings.ASYNCPOLL = {
            **settings.ASYNCPOLL,
            "RETENTION_DAYS": retention,
            "PRUNE_BATCH": 2,
        }
        for number in range(5):
            await submit(client, key=f"old {number}")
        await age_keys("25 hours")
        await submit(client, key="young")
        await Pruning(service.pool).step()
        assert await IdempotencyKey.objects.acount() == 1
        assert emitted.of("tasks.pruned")[-1]["keys"] == 5
        assert await count_tasks() == 6

    async def test_a_refused_submission_leaves_its_key_free(self, client):
        """A mistake is mended under the same key."""
        refused = await submit(client, {"task": "no.such"}, "k")
        assert refused.status_code == 422
        assert (await submit(client, key="k")).status_code == 202


class TestSubmitAndWait:
    """POST with `Prefer: wait`."""

    async def test_a_task_that_ends_in_time_is_answered_with_its_result(self, client, service):
        """200, no second request."""
        held = asyncio.ensure_future(submit(client, Prefer="wait=20"))
        await aeventually(lambda: admission.held == 1)
        task_id = (await Task.objects.aget()).id
        await service.pool.run(step(task_id, Status.RUNNING))
        await service.pool.run(step(task_id, Status.SUCCESS, result="42"))
        answer = await held
        assert (answer.status_code, answer.json()["status"], answer.json()["result"]) == (
            200,
            "SUCCESS",
            42,
        )
        assert answer.headers["etag"] == 'W/"v3"'
        assert answer.headers["location"] == f"{API}/tasks/{task_id}"
        assert answer.headers["preference-applied"].startswith("wait=")
        assert "retry-after" not in answer.headers

    async def test_a_task_that_takes_longer_is_accepted(self, client):
        """202, as without the preference."""
        answer = await submit(client, Prefer="respond-async, wait=0.3")
        assert (answer.status_code, answer.json()["status"]) == (202, "PENDING")
        assert answer.headers["retry-after"] == "1"
        assert admission.held == admission.inside == 0

    async def test_a_wait_that_fails_leaves_the_submission_accepted(self, client, monkeypatch):
        """An error would have the client submit it again."""

        async def away(asked: Any) -> Any:
            raise StoreUnavailable("gone")

        monkeypatch.setattr(submitting, "wait", away)
        answer = await submit(client, Prefer="wait=5")
        assert (answer.status_code, answer.json()["version"]) == (202, 1)

    async def test_an_accepted_submission_needs_no_second_look(self, client, statements):
        """It is answered from what was stored, so that nothing can fail after the commit."""
        answer = await submit(client)
        assert answer.json() == {
            **(await client.get(answer.headers["location"])).json(),
            "poll_ticket": answer.json()["poll_ticket"],
        }
        assert [name for name in statements if name != "notify"] == ["enqueue", "read"]

    async def test_a_whole_number_may_be_written_with_a_point(self, client):
        """3.0 is an integer to JSON; 3.5 is none."""
        answer = await submit(client, {**BODY, "max_attempts": 3.0, "priority": -5.0})
        assert answer.status_code == 202
        is_problem(
            await submit(client, {**BODY, "max_attempts": 2.5}),
            422,
            "invalid-body",
            "max_attempts",
        )

    async def test_waiting_counts_for_the_owner(self, client, service, settings):
        """MAX_HELD_PER_OWNER holds for every kind of hold."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_HELD_PER_OWNER": 1}
        task_id = await stored(service)
        held = asyncio.ensure_future(
            client.get(f"{API}/tasks/{task_id}/long_poll?client_known_version=1")
        )
        await aeventually(lambda: admission.held == 1)
        answer = await submit(client, Prefer="wait=20", key=str(uuid4()))
        assert answer.status_code == 202
        held.cancel()


def waiting_inserts() -> bool:
    with psycopg.connect(**dsn.parameters("test"), autocommit=True) as connection:
        (count,) = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
            "AND datname = current_database() AND query LIKE '%tasks_app_idempotencykey%'"
        ).fetchone()
    return count == 3
