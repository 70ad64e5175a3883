"""A task over the wire: its status, submitting it, cancelling it."""

from __future__ import annotations

import asyncio
import json

import pytest

from asyncpoll.contract import Status
from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tasks_app.store import step
from tasks_app.tasks import task
from tests.integration.api_support import API, count_tasks, is_problem
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)


@task(name="api.echo", expose=True)
def echo(value: str) -> str:
    """What it was given."""
    return value


@task(name="api.hidden")
def hidden() -> None:
    """Not for submitting."""


class TestStatusAndTask:
    """GET …/status and GET …/tasks/{id}."""

    async def test_status_waits_for_the_end_and_not_for_changes(self, client, service, task_id):
        """Each milestone passes it by."""
        held = asyncio.ensure_future(
            client.get(f"{API}/tasks/{task_id}/status?wait=true&timeout=20")
        )
        await aeventually(lambda: admission.held == 1)
        await service.pool.run(step(task_id, Status.RUNNING))
        await aeventually(
            lambda: any(t.snapshot and t.snapshot.version == 2 for t in service.hub.topics.values())
        )
        assert not held.done()
        await service.pool.run(step(task_id, Status.SUCCESS, result="1"))
        assert (await held).json()["outcome"] == "TERMINAL"

    async def test_status_without_wait_answers_at_once(self, client, task_id):
        """wait=false and no wait are the same."""
        for query in ("", "?wait=false", "?wait=0&timeout=30"):
            assert (await client.get(f"{API}/tasks/{task_id}/status{query}")).json()[
                "status"
            ] == "PENDING"

    @pytest.mark.parametrize(
        ("query", "parameter"),
        [
            ("wait=maybe", "wait"),
            ("wait=true&timeout=-1", "timeout"),
            ("wait=true&wait=true", "wait"),
        ],
    )
    async def test_status_refuses_what_it_can_not_read(self, client, task_id, query, parameter):
        """Naming the parameter."""
        is_problem(
            await client.get(f"{API}/tasks/{task_id}/status?{query}"),
            400,
            "invalid-parameter",
            parameter,
        )

    async def test_a_conditional_request_is_held_and_ends_in_304(self, client, task_id):
        """Prefer: wait with If-None-Match is a hold in standard words."""
        headers = {"Prefer": "respond-async, wait=0.3", "If-None-Match": 'W/"v1"'}
        response = await client.get(f"{API}/tasks/{task_id}", headers=headers)
        assert (response.status_code, response.content, response.headers["etag"]) == (
            304,
            b"",
            'W/"v1"',
        )
        assert response.headers["preference-applied"].startswith("wait=")
        assert not {"content-length", "content-type"} & set(response.headers)

    async def test_a_conditional_request_is_answered_by_the_change(self, client, service, task_id):
        """200 with the new version."""
        headers = {"Prefer": "wait=20", "If-None-Match": 'W/"v1"'}
        held = asyncio.ensure_future(client.get(f"{API}/tasks/{task_id}", headers=headers))
        await aeventually(lambda: admission.held == 1)
        await service.pool.run(step(task_id, Status.RUNNING))
        response = await held
        assert (response.status_code, response.headers["etag"], response.json()["version"]) == (
            200,
            'W/"v2"',
            2,
        )

    @pytest.mark.parametrize(
        ("tags", "status"),
        [
            ('W/"v1"', 304),
            ('"v1"', 304),
            ('"other", W/"v1"', 304),
            ("*", 304),
            ('W/"v2"', 200),
            ("nonsense", 200),
            ('W/"v01x"', 200),
            (",,,", 200),
            ('W/"v2",W/"v3"', 200),
        ],
    )
    async def test_any_tag_of_the_present_version_matches(self, client, task_id, tags, status):
        """A list, a star, and what is no tag of ours."""
        headers = {"If-None-Match": tags}
        response = await client.get(f"{API}/tasks/{task_id}", headers=headers)
        assert (response.status_code, response.headers["etag"]) == (status, 'W/"v1"')

    async def test_the_task_itself_shows_its_times(self, client, task_id):
        """RFC 3339, in UTC."""
        body = (await client.get(f"{API}/tasks/{task_id}")).json()
        assert body["created_at"].endswith("Z")
        assert (body["queue"], body["finished_at"]) == ("outside", None)


class TestSubmitting:
    """POST /tasks."""

    async def submit(self, client, body, **headers):
        content = body if isinstance(body, bytes | str) else json.dumps(body)
        return await client.post(
            f"{API}/tasks", content=content, headers={"Content-Type": "application/json", **headers}
        )

    async def test_a_task_is_accepted_with_its_location(self, client):
        """202, PENDING, version 1, and a ticket for whoever shall wait for it."""
        response = await self.submit(client, {"task": "sample.add", "kwargs": {"a": 2}})
        body = response.json()
        assert response.status_code == 202
        assert response.headers["location"] == f"{API}/tasks/{body['task_id']}"
        assert response.headers["retry-after"] == "1"
        assert (body["status"], body["version"]) == ("PENDING", 1)
        ticket = await client.get(f"{response.headers['location']}?ticket={body['poll_ticket']}")
        assert ticket.json()["task_id"] == body["task_id"]

    @pytest.mark.parametrize(
        ("body", "status", "kind", "words"),
        [
            ("{", 400, "invalid-body", "not JSON"),
            ("", 400, "invalid-body", "not JSON"),
            ('{"task":"sample.add","kwargs":{"a":NaN}}', 400, "invalid-body", "not JSON"),
            ('{"task":"api.echo","kwargs":{"value":"\\ud800"}}', 422, "invalid-arguments", "surrogate"),
            ('{"task":"api.echo","queue":"\\ud800"}', 422, "out-of-bounds", "queue is ?"),
            ("[" * 100_000, 400, "invalid-body", "not JSON"),
            ('{"task":"sample.add","kwargs":{"a":' + "9" * 5_000 + "}}", 400, "invalid-body", "not JSON"),
            ("[]", 422, "invalid-body", "dictionary"),
            ({}, 422, "invalid-body", "required"),
            ({"task": 3}, 422, "invalid-body", "string"),
            ({"task": "sample.add", "nope": 1}, 422, "invalid-body", "Extra"),
            ({"task": "sample.add", "kwargs": []}, 422, "invalid-body", "dictionary"),
            ({"task": "sample.add", "priority": "high"}, 422, "invalid-body", "integer"),
            ({"task": "sample.add", "run_at": "tomorrow"}, 422, "invalid-body", "datetime"),
            ({"task": "sample.add", "run_at": "2026-01-01T00:00:00"}, 422, "invalid-body", "timezone"),
            ({"task": "no.such"}, 422, "unknown-task-type", "'no.such'"),
            ({"task": "api.hidden"}, 422, "unknown-task-type", "expose=True"),
            ({"task": "sample.add"}, 422, "invalid-arguments", "missing a required argument: 'a'"),
            ({"task": "sample.add", "kwargs": {"a": 1, "z": 2}}, 422, "invalid-arguments", "unexpected keyword argument 'z'"),
            ({"task": "sample.add", "kwargs": {"a": "one"}}, 422, "invalid-arguments", "a is 'one'"),
            ({"task": "sample.add", "args": [1, 2, 3]}, 422, "invalid-arguments", "too many positional"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "queue": "other"}, 422, "out-of-bounds", "queue is other; this task allows default."),
            ({"task": "sample.add", "kwargs": {"a": 1}, "priority": 101}, 422, "out-of-bounds", "priority is 101"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "max_attempts": 99}, 422, "out-of-bounds", "max_attempts is 99"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "max_attempts": 0}, 422, "out-of-bounds", "max_attempts is 0"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "timeout_seconds": 1e-320}, 422, "out-of-bounds", "this task allows at least 0.01"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "timeout_seconds": 1e9}, 422, "out-of-bounds", "timeout_seconds"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "timeout_seconds": -1}, 422, "out-of-bounds", "timeout_seconds"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "run_at": "9999-01-01T00:00:00Z"}, 422, "out-of-bounds", "run_at"),
        ],
    )  # fmt: skip
    async def test_a_bad_submission_is_refused_with_the_reason_and_stores_nothing(
        self, client, service, body, status, kind, words
    ):
        """Each kind of mistake, named."""
        response = await self.submit(client, body)
        assert response.json()["type"] == f"/problems/{kind}", response.text
        assert response.status_code == status
        assert words in response.json()["detail"]
        assert await count_tasks() == 0

    async def test_a_large_integer_stays_what_it_is(self, client):
        """Not a float that is near it."""
        response = await self.submit(client, {"task": "sample.add", "kwargs": {"a": 2**70 + 1}})
        from tasks_app.models import Task

        stored_task = await Task.objects.aget(id=response.json()["task_id"])
        assert stored_task.kwargs == {"a": 2**70 + 1}

    async def test_a_time_in_the_past_is_now(self, client):
        """Also one that lies before the first year that a database knows."""
        body = {"task": "sample.add", "kwargs": {"a": 1}, "run_at": "0001-01-01T00:00:00+14:00"}
        response = await self.submit(client, body)
        from tasks_app.models import Task

        stored_task = await Task.objects.aget(id=response.json()["task_id"])
        assert stored_task.run_at == stored_task.created_at

    async def test_a_nul_in_an_argument_is_refused(self, client):
        """Postgres can't store it; better now than when it is claimed."""
        response = await self.submit(client, {"task": "api.echo", "kwargs": {"value": "a\x00b"}})
        assert "NUL" in is_problem(response, 422, "invalid-arguments")

    async def test_a_body_of_ten_megabytes_is_refused(self, client):
        """413, and the server goes on."""
        is_problem(await self.submit(client, b"x" * 10_000_000), 413, "body-too-large")
        assert (await client.get("/healthz")).status_code == 200

    async def test_a_body_that_does_not_say_it_is_json_is_refused(self, client):
        """A page of another origin could send it without asking."""
        for media_type in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
        ):
            response = await self.submit(
                client, {"task": "sample.add", "kwargs": {"a": 1}}, **{"Content-Type": media_type}
            )
            is_problem(response, 415, "unsupported-media-type")

    @pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
    async def test_other_methods_are_refused(self, client, method):
        """405 with Allow."""
        response = await client.request(method, f"{API}/tasks")
        is_problem(response, 405, "method-not-allowed")
        assert "POST" in response.headers["allow"]


class TestCancel:
    """POST …/cancel."""

    async def test_a_pending_task_is_cancelled_and_its_waiters_told(self, client, task_id):
        """At once, and again with the same answer."""
        held = asyncio.ensure_future(
            client.get(f"{API}/tasks/{task_id}/long_poll?client_known_version=1")
        )
        await aeventually(lambda: admission.held == 1)
        first = await client.post(f"{API}/tasks/{task_id}/cancel")
        second = await client.post(f"{API}/tasks/{task_id}/cancel")
        assert first.json()["status"] == second.json()["status"] == "CANCELLED"
        assert first.json()["version"] == second.json()["version"] == 2
        assert (await held).json()["outcome"] == "TERMINAL"

    async def test_a_running_task_is_asked(self, client, service, task_id):
        """Its worker ends it."""
        await service.pool.run(step(task_id, Status.RUNNING))
        body = (await client.post(f"{API}/tasks/{task_id}/cancel")).json()
        assert (body["status"], body["cancel_requested"], body["version"]) == ("RUNNING", True, 3)

    async def test_unknown_and_malformed_ids_are_refused(self, client):
        """Like everywhere."""
        is_problem(await client.post(f"{API}/tasks/{new_task_id()}/cancel"), 404, "task-not-found")
        is_problem(
            await client.post(f"{API}/tasks/abc/cancel"), 400, "invalid-parameter", "task_id"
        )
        is_problem(
            await client.get(f"{API}/tasks/{new_task_id()}/cancel"), 405, "method-not-allowed"
        )
