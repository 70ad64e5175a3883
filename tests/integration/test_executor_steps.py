"""POST …/tasks/{id}/steps, against a real database."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tests.external_tasks import anything, render
from tests.integration.executors_support import API, Executor, executing
from tests.support import aeventually
from tests.workers import fetch, history, look

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def executor(service) -> AsyncIterator[Executor]:
    """An executor that talks to the application."""
    async with executing() as made:
        yield made


@pytest.fixture
async def task(executor):
    """A task that is claimed, as its executor got it. Three attempts are allowed."""
    await render.aenqueue(pages=["a"])
    return await executor.claim_one()


def row_of(task):
    return look(uuid.UUID(task["task_id"]))


async def kinds_of(task):
    return [kind for _, kind, _, _ in await history(uuid.UUID(task["task_id"]))]


async def expire(task, seconds=2):
    await fetch(
        "UPDATE tasks_app_task SET lease_expires_at = now() - make_interval(secs => %s) WHERE id = %s",
        seconds,
        task["task_id"],
    )


async def is_refused(response, status, kind):
    assert response.status_code == status, response.text
    document = response.json()
    assert document["type"] == f"/problems/{kind}"
    assert len(document["detail"]) > 20
    return document


class TestProgress:
    """A RUNNING step."""

    async def test_it_is_seen_by_whoever_waits_like_any_commit(self, executor, service, task):
        """Progress, message and data; a new version."""
        client = executor._client
        held = asyncio.ensure_future(
            client.get(f"{API}/tasks/{task['task_id']}/long_poll?client_known_version=2")
        )
        await aeventually(lambda: admission.held == 1)
        stepped = await executor.stepped(task, progress=0.4, message="cleaned", data={"rows": 7})
        assert stepped == {
            **stepped,
            "task_id": task["task_id"],
            "attempt": 1,
            "status": "RUNNING",
            "version": 3,
            "cancel_requested": False,
            "repeated": False,
        }
        seen = (await held).json()
        assert (seen["version"], seen["progress"], seen["message"]) == (3, 0.4, "cleaned")
        [[data]] = await fetch("SELECT data FROM tasks_app_taskevent WHERE version = 3")
        assert data == {"rows": 7}

    async def test_it_extends_the_lease(self, executor, task):
        """From when it was heard."""
        await expire(task, seconds=-5)
        stepped = await executor.stepped(task, progress=0.1)
        assert stepped["lease_expires_at"] > task["lease_expires_at"]
        assert not (await row_of(task)).stalled

    async def test_one_without_news_only_extends_the_lease(self, executor, task):
        """A heartbeat wakes nobody."""
        before = task["lease_expires_at"]
        stepped = await executor.stepped(task, status="RUNNING")
        assert (stepped["version"], await kinds_of(task)) == (2, ["enqueued", "started"])
        assert stepped["lease_expires_at"] > before

    async def test_the_lease_never_reaches_past_the_deadline(self, executor):
        """An executor that hangs cannot keep its task for ever."""
        await anything.using(timeout=3).aenqueue()
        task = await executor.claim_one()
        assert task["lease_seconds"] == 3.0
        stepped = await executor.stepped(task, progress=0.5)
        assert stepped["lease_expires_at"] == task["deadline"]

    async def test_the_number_of_versions_is_bounded(self, executor, task, settings):
        """Then only the lease is extended, and the end still counts."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_EVENTS": 10}
        for number in range(20):
            stepped = await executor.stepped(task, progress=number / 20)
        assert stepped["version"] == 8
        assert (await executor.stepped(task, status="SUCCESS", result=1))["version"] == 9

    async def test_it_learns_of_a_cancel(self, executor, task):
        """From the answer, and may end the task."""
        await executor._client.post(f"{API}/tasks/{task['task_id']}/cancel")
        assert (await executor.stepped(task))["cancel_requested"]
        assert (await executor.stepped(task, progress=0.9))["cancel_requested"]
        ended = await executor.stepped(task, status="CANCELLED", message="stopped at page 3")
        assert (ended["status"], ended["lease_expires_at"]) == ("CANCELLED", None)
        row = await row_of(task)
        assert (row.status, row.message) == (Status.CANCELLED, "stopped at page 3")


class TestEnds:
    """The other statuses."""

    async def test_success_has_a_result(self, executor, task):
        """Any JSON, null as well."""
        result = {"url": "s3://b/k", "pages": [1, 2.5, None, "é"]}
        ended = await executor.stepped(task, status="SUCCESS", result=result, message="done")
        assert (ended["status"], ended["version"]) == ("SUCCESS", 3)
        held = await executor._client.get(f"{API}/tasks/{task['task_id']}/long_poll")
        assert held.json() == {
            **held.json(),
            "status": "SUCCESS",
            "outcome": "TERMINAL",
            "result": result,
            "progress": 1.0,
            "message": "done",
        }
        assert await kinds_of(task) == ["enqueued", "started", "succeeded"]

    async def test_failure_is_followed_by_another_attempt(self, executor, service, task, emitted):
        """As the task's policy has it, after a delay."""
        ended = await executor.stepped(
            task, status="FAILED", error={"type": "Boom", "message": "no paper"}
        )
        assert ended["status"] == "PENDING"
        row = await row_of(task)
        assert (row.status, row.error_type, row.error_message) == (
            Status.PENDING,
            "Boom",
            "no paper",
        )
        assert "Attempt 1 failed (Boom: no paper)" in row.message
        [finished] = emitted.of("task.finished")
        assert (finished["name"], finished["status"]) == ("sample.render", Status.PENDING)
        await fetch("UPDATE tasks_app_task SET run_at = now()")
        await service.pool.run(store.promote(10))
        again = await executor.claim_one("two")
        assert (again["task_id"], again["attempt"]) == (task["task_id"], 2)

    async def test_the_last_failure_allowed_ends_the_task(self, executor):
        """One attempt is all it has."""
        await anything.aenqueue()
        task = await executor.claim_one()
        assert (await executor.stepped(task, status="FAILED", error="no paper"))[
            "status"
        ] == "FAILED"
        row = await row_of(task)
        assert (row.error_type, row.error_message) == ("Failed", "no paper")

    async def test_an_end_has_its_line_in_the_log_and_an_attempt_that_is_followed_has_none(
        self, executor, task, emitted
    ):
        """As one that a worker of ours ran; a repeated report is no second end."""
        await executor.stepped(task, status="PENDING")
        assert emitted.of("tasks.done") == []
        again = await executor.claim_one("two")
        for _ in range(2):
            await executor.stepped(again, status="SUCCESS", result=7)
        [told] = emitted.of("tasks.done")
        [done] = told["ended"]
        assert (done.task, str(done.task_id), done.queue) == (
            "sample.render",
            task["task_id"],
            task["queue"],
        )
        assert (done.attempt, done.outcome) == (2, "SUCCESS")
        assert done.duration_ms > 0
        assert done.queue_wait_ms >= 0

    async def test_a_failure_that_no_attempt_will_mend_ends_the_task(self, executor, task):
        """`retryable` false."""
        ended = await executor.stepped(task, status="FAILED", error="never", retryable=False)
        assert ended["status"] == "FAILED"

    async def test_a_failure_of_a_task_whose_cancel_was_asked_for_is_its_end(self, executor, task):
        """Nobody wants it tried again."""
        await executor._client.post(f"{API}/tasks/{task['task_id']}/cancel")
        ended = await executor.stepped(task, status="FAILED", error="interrupted")
        assert ended["status"] == "CANCELLED"

    async def test_a_task_can_be_given_back(self, executor, task):
        """By an executor that is told to stop; it costs the task no attempt."""
        assert (await executor.stepped(task, status="PENDING"))["status"] == "PENDING"
        again = await executor.claim_one("two")
        assert again["attempt"] == 2
        [[failures]] = await fetch("SELECT failures FROM tasks_app_task")
        assert failures == 0
        assert await kinds_of(task) == ["enqueued", "started", "released", "started"]

    async def test_a_long_error_is_cut_rather_than_refused(self, executor, task):
        """An end must not get lost over its own text."""
        error = {"type": "T", "message": "x\u0000y" * 10_000}
        await executor.stepped(task, status="FAILED", error=error, retryable=False)
        assert len((await row_of(task)).error_message) == 4_000


FINAL = [
    {"status": "SUCCESS", "result": {"a": [1, 2.0]}},
    {"status": "SUCCESS"},
    {"status": "FAILED", "error": "x"},
    {"status": "FAILED", "error": "x", "retryable": False},
    {"status": "CANCELLED", "message": "stopped"},
    {"status": "PENDING"},
]


class TestRepeated:
    """An answer may be cut off after the commit."""

    @pytest.mark.parametrize("body", FINAL)
    async def test_the_same_end_again_is_no_error_and_changes_nothing(self, executor, task, body):
        """The executor learns that it was heard."""
        first = await executor.stepped(task, **body)
        again = await executor.stepped(task, **body)
        assert (again["repeated"], first["repeated"]) == (True, False)
        assert (again["status"], again["version"]) == (first["status"], first["version"])

    @pytest.mark.parametrize("body", FINAL)
    @pytest.mark.parametrize("other", [{"status": "SUCCESS", "result": 2}, {"progress": 0.5}])
    async def test_another_end_than_the_one_that_counts_is_refused(
        self, executor, task, body, other
    ):
        """A result that was not stored must not seem to be."""
        await executor.stepped(task, **body)
        await is_refused(await executor.step(task, **other), 409, "lease-lost")

    async def test_a_failure_that_a_cancel_made_the_end_of_can_be_repeated(self, executor, task):
        """It was heard, whatever became of it."""
        await executor._client.post(f"{API}/tasks/{task['task_id']}/cancel")
        for repeated in (False, True):
            ended = await executor.stepped(task, status="FAILED", error="interrupted")
            assert (ended["status"], ended["repeated"]) == ("CANCELLED", repeated)

    async def test_two_racing_copies_of_an_end_are_one(self, executor, task):
        """One commits, the other finds it."""
        answers = await asyncio.gather(
            *(executor.stepped(task, status="SUCCESS", result=1) for _ in range(5))
        )
        assert sorted(answer["repeated"] for answer in answers) == [False, True, True, True, True]
        assert {answer["version"] for answer in answers} == {3}


class TestLost:
    """The lease is not theirs any more."""

    async def test_after_its_rescue_nothing_of_an_attempt_counts(
        self, executor, service, task, emitted
    ):
        """409, for every status, and the task is left to the next attempt."""
        await expire(task)
        await service.pool.run(store.rescue(10, 1.0, 2.0))
        for body in ({"progress": 0.5}, {"status": "SUCCESS", "result": 1}, *FINAL):
            document = await is_refused(await executor.step(task, **body), 409, "lease-lost")
            assert "stop working on it" in document["detail"]
        row = await row_of(task)
        assert (row.status, row.error_type) == (Status.PENDING, "LeaseExpired")
        assert emitted.of("task.fenced")

    async def test_the_next_attempt_is_safe_from_the_last_ones_token(self, executor, service, task):
        """Also where the same claim holds it again."""
        await executor.stepped(task, status="PENDING")
        await fetch("UPDATE tasks_app_claim SET expires_at = now() - interval '1 second'")
        again = await executor.claim_one("one")
        assert again["task_id"] == task["task_id"]
        assert again["lease_token"] != task["lease_token"]
        await is_refused(await executor.step(task, status="SUCCESS", result=1), 409, "lease-lost")
        assert (await executor.stepped(again, status="SUCCESS", result=2))["status"] == "SUCCESS"

    async def test_after_its_deadline_an_attempt_is_over(self, executor, service, task):
        """Even before it is rescued; a late result does not count, as with a worker of ours."""
        await fetch("UPDATE tasks_app_task SET started_at = now() - interval '601 seconds'")
        await is_refused(await executor.step(task, status="SUCCESS", result=1), 409, "lease-lost")

    async def test_a_lease_that_ran_out_unnoticed_is_taken_up_again(self, executor, task):
        """Nobody else has had the task meanwhile, so no work is thrown away."""
        await expire(task, seconds=0.5)
        assert (await executor.stepped(task, progress=0.5))["status"] == "RUNNING"

    async def test_a_task_that_was_deleted_is_gone(self, executor, service, task):
        """410."""
        await service.pool.run(store.delete([uuid.UUID(task["task_id"])]))
        await is_refused(await executor.step(task, progress=0.5), 410, "task-gone")

    async def test_a_rescue_and_an_end_that_race_have_one_winner(self, executor, service):
        """Ten times, on one row each."""
        for number in range(10):
            await render.aenqueue(pages=["a"])
            task = await executor.claim_one(f"c{number}")
            await expire(task)
            response, rescued = await asyncio.gather(
                executor.step(task, status="SUCCESS", result=1),
                service.pool.run(store.rescue(10, 600.0, 600.0)),
            )
            row = await row_of(task)
            assert (response.status_code, len(rescued), row.status) in [
                (200, 0, Status.SUCCESS),
                (409, 1, Status.PENDING),
            ]


class TestRefused:
    """What an executor may not do, and what does not fit."""

    async def test_no_token_fits_but_the_one_that_came_with_the_task(self, executor, task):
        """A made-up one, another task's, one for an id that does not exist: all the same answer."""
        await render.aenqueue(pages=["b"])
        other = await executor.claim_one("two")
        foreign = {**task, "lease_token": other["lease_token"]}
        unknown = {**task, "task_id": str(new_task_id())}
        made_up = {**task, "lease_token": task["lease_token"][:-2] + "xx"}
        for wrong in (foreign, unknown, made_up, {**task, "lease_token": ""}):
            document = await is_refused(
                await executor.step(wrong, status="SUCCESS", result=1), 403, "forbidden"
            )
            assert document["parameter"] == "lease_token"
        assert (await row_of(task)).status is Status.RUNNING

    async def test_credentials_are_neither_needed_nor_looked_at(self, executor, task, settings):
        """The token is all."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False}
        body = {"lease_token": task["lease_token"], "progress": 0.5}
        for headers in ({}, {"Authorization": "Bearer nonsense"}):
            path = f"/tasks/{task['task_id']}/steps"
            response = await executor.post(path, body, headers=headers)
            assert response.status_code == 200

    @pytest.mark.parametrize(
        ("body", "parameter"),
        [
            ({"status": "DONE"}, "status"),
            ({"status": "running"}, "status"),
            ({"progress": 1.01}, "progress"),
            ({"progress": -0.1}, "progress"),
            ({"progress": "0.5"}, "progress"),
            ({"progress": True}, "progress"),
            ({"message": 7}, "message"),
            ({"message": "m" * 2_001}, "message"),
            ({"data": [1]}, "data"),
            ({"status": "RUNNING", "result": 1}, "body"),
            ({"status": "SUCCESS", "error": "x"}, "body"),
            ({"status": "FAILED", "error": {"kind": "x"}}, "error"),
            ({"status": "FAILED", "error": {"type": "t" * 201}}, "error"),
            ({"status": "FAILED", "retryable": "no"}, "retryable"),
            ({"state": "RUNNING"}, "state"),
        ],
    )
    async def test_a_body_that_breaks_a_rule(self, executor, task, body, parameter):
        """422, naming what; the attempt goes on."""
        document = await is_refused(await executor.step(task, **body), 422, "invalid-body")
        assert document["parameter"] == parameter
        assert (await executor.stepped(task))["version"] == 2

    @pytest.mark.parametrize(
        "body",
        [
            {"status": "SUCCESS", "result": "nul \u0000"},
            {"status": "SUCCESS", "result": {"nul \u0000": 1}},
            {"status": "SUCCESS", "result": "x" * 3_000},
            {"data": {"big": "x" * 3_000}},
            {"data": {"nul": "\u0000"}},
        ],
    )
    async def test_a_value_that_can_not_be_stored(self, executor, task, body, settings):
        """The reason, and the lease is kept for a second try."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_RESULT_BYTES": 2_000}
        await is_refused(await executor.step(task, **body), 422, "invalid-arguments")
        ended = await executor.stepped(task, status="FAILED", error="no", retryable=False)
        assert ended["status"] == "FAILED"

    async def test_bodies_that_are_too_large_or_no_json(self, executor, task):
        """413, 400; NaN is not JSON."""
        path = f"{API}/tasks/{task['task_id']}/steps"
        headers = {"Content-Type": "application/json"}
        client = executor._client
        large = await client.post(path, content=b'"' + b"x" * 1_100_000 + b'"', headers=headers)
        assert large.status_code == 413
        for content in (b"", b"{", b'{"progress": NaN}', b"\xff"):
            response = await client.post(path, content=content, headers=headers)
            assert response.status_code == 400, content

    @pytest.mark.parametrize(
        "field",
        [
            '"message": "\\ud800"',
            '"data": {"\\ud800": 1}',
            '"\\ud800": 1',
            '"status": "SUCCESS", "result": ["\\ud800"]',
            '"status": "SUCCESS", "result": ' + "[" * 900 + "]" * 900,
        ],
    )
    async def test_json_that_is_no_text_or_too_deep_is_refused_or_stored_but_never_fails(
        self, executor, task, field
    ):
        """A lone surrogate anywhere, and arrays within arrays."""
        body = f'{{"lease_token": "{task["lease_token"]}", {field}}}'
        response = await executor._client.post(
            f"{API}/tasks/{task['task_id']}/steps",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        assert response.status_code == (200 if "[[[" in field else 422), response.text
        assert (await row_of(task)).status in (Status.RUNNING, Status.SUCCESS)

    async def test_an_error_type_of_which_nothing_can_be_stored_has_the_usual_name(
        self, executor, task
    ):
        """A failure without a type could not be told from none."""
        body = {"type": "\x00\x00", "message": "broken\x00"}
        await executor.stepped(task, status="FAILED", error=body, retryable=False)
        row = await row_of(task)
        assert (row.status, row.error_type, row.error_message) == ("FAILED", "Failed", "broken")

    async def test_an_id_that_is_none(self, executor, task):
        """400."""
        response = await executor.step({**task, "task_id": "nonsense"}, progress=0.5)
        assert (response.status_code, response.json()["parameter"]) == (400, "task_id")
