"""The wire, as the protocol page has it."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from asyncpoll.contract import Status
from tasks_app.api.identity import poll_ticket
from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tasks_app.store import step
from tasks_app.tasks import task
from tests.integration.api_support import API, count_tasks, is_problem, mapped, stored
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)


@task(name="api.echo", expose=True)
def echo(value: str) -> str:
    """What it was given."""
    return value


@task(name="api.hidden")
def hidden() -> None:
    """Not for submitting."""


@pytest.fixture
async def task_id(service) -> uuid.UUID:
    """A PENDING task that no worker takes."""
    return await stored(service)


class TestLongPoll:
    """GET …/long_poll."""

    async def test_the_first_poll_answers_at_once_with_the_whole_state(self, client, task_id):
        """An absent version is 0, which no row has."""
        response = await client.get(f"{API}/tasks/{task_id}/long_poll")
        body = response.json()
        assert response.status_code == 200
        assert (response.headers["etag"], response.headers["cache-control"]) == (
            'W/"v1"',
            "no-store",
        )
        assert body == {
            **body,
            "task_id": str(task_id), "task": "sample.add", "status": "PENDING", "version": 1, "outcome": "CHANGED",
            "progress": None, "message": "", "attempt": 0, "result": None, "error": None, "stalled": False,
            "should_continue_polling": True, "recommended_client_backoff_ms": 0,
        }  # fmt: skip
        assert body["client_read_timeout_ms"] == body["hold_granted_ms"] + 10_000
        assert "reset" not in body

    async def test_a_held_poll_is_answered_by_the_commit(self, client, service, task_id):
        """The whole path: commit, NOTIFY, hint, read, answer."""
        held = asyncio.ensure_future(
            client.get(f"{API}/tasks/{task_id}/long_poll?client_known_version=1")
        )
        await aeventually(lambda: admission.held == 1)
        await service.pool.run(step(task_id, Status.RUNNING, progress=0.5, message="half way"))
        body = (await held).json()
        assert (body["outcome"], body["version"], body["progress"], body["message"]) == (
            "CHANGED",
            2,
            0.5,
            "half way",
        )
        assert admission.held == 0

    async def test_the_end_carries_the_result_and_stops_the_polling(self, client, service, task_id):
        """TERMINAL, should_continue_polling false, whatever version the client knows."""
        await service.pool.run(
            step(task_id, Status.SUCCESS, result='{"answer":[1,2.50,"\\u00e9"]}')
        )
        for known in (0, 1, 2):
            body = (
                await client.get(f"{API}/tasks/{task_id}/long_poll?client_known_version={known}")
            ).json()
            assert (body["outcome"], body["status"], body["should_continue_polling"]) == (
                "TERMINAL",
                "SUCCESS",
                False,
            )
            assert body["result"] == {"answer": [1, 2.5, "é"]}

    async def test_a_large_result_is_answered_whole(self, client, service, task_id):
        """A megabyte is read by itself, when it is answered."""
        await service.pool.run(
            step(
                task_id,
                Status.SUCCESS,
                result=json.dumps([uuid.uuid4().hex for _ in range(25_000)]),
            )
        )
        body = (await client.get(f"{API}/tasks/{task_id}/long_poll")).json()
        assert len(body["result"]) == 25_000

    async def test_a_failed_task_is_data(self, client, service, task_id):
        """200 with type and message, never a traceback."""
        await service.pool.run(
            step(task_id, Status.FAILED, error_type="ValueError", error_message="no such file")
        )
        response = await client.get(f"{API}/tasks/{task_id}/long_poll")
        assert response.status_code == 200
        assert (response.json()["status"], response.json()["error"]) == (
            "FAILED",
            {"type": "ValueError", "message": "no such file"},
        )

    async def test_a_hold_that_runs_out_says_so_and_grants_less_than_asked(self, client, task_id):
        """STILL_RUNNING, no result, a short pause."""
        body = (
            await client.get(
                f"{API}/tasks/{task_id}/long_poll?client_known_version=1&max_hold_seconds=0.4"
            )
        ).json()
        assert (body["outcome"], body["result"]) == ("STILL_RUNNING", None)
        assert 375 <= body["hold_granted_ms"] <= 400
        assert 50 <= body["recommended_client_backoff_ms"] <= 150

    async def test_a_hold_of_zero_answers_at_once_and_asks_for_a_second_of_patience(
        self, client, task_id
    ):
        """Short polling works, slowly."""
        body = (
            await client.get(
                f"{API}/tasks/{task_id}/long_poll?client_known_version=1&max_hold_seconds=0"
            )
        ).json()
        assert (body["outcome"], body["hold_granted_ms"]) == ("STILL_RUNNING", 0)
        assert body["recommended_client_backoff_ms"] >= 1000

    async def test_a_hold_that_is_too_long_is_clamped_and_reported(self, client, service, task_id):
        """1e9 is a number."""
        held = asyncio.ensure_future(
            client.get(
                f"{API}/tasks/{task_id}/long_poll?client_known_version=1&max_hold_seconds=1e9"
            )
        )
        await aeventually(lambda: admission.held == 1)
        await service.pool.run(step(task_id, Status.RUNNING))
        assert 25_000 * 15 / 16 <= (await held).json()["hold_granted_ms"] <= 25_000

    @pytest.mark.parametrize("version", ["2", "7", str(2**63), "1000000000"])
    async def test_a_version_that_the_row_never_had_is_reset(self, client, task_id, version):
        """The database was restored, or the client is confused."""
        body = (
            await client.get(f"{API}/tasks/{task_id}/long_poll?client_known_version={version}")
        ).json()
        assert (body["outcome"], body["version"], body["reset"]) == ("CHANGED", 1, True)

    @pytest.mark.parametrize("version", ["-1", "1e9", "", "abc", "1.5", "NaN", "%00", "1%201"])
    async def test_a_malformed_version_is_refused(self, client, task_id, version):
        """With the parameter's name."""
        response = await client.get(
            f"{API}/tasks/{task_id}/long_poll?client_known_version={version}"
        )
        assert "client_known_version is" in is_problem(
            response, 400, "invalid-parameter", "client_known_version"
        )

    @pytest.mark.parametrize("hold", ["NaN", "-1", "inf", "text", "", "1e999"])
    async def test_a_malformed_hold_is_refused(self, client, task_id, hold):
        """Also where the poll would not have been held."""
        response = await client.get(f"{API}/tasks/{task_id}/long_poll?max_hold_seconds={hold}")
        assert "max_hold_seconds is" in is_problem(
            response, 400, "invalid-parameter", "max_hold_seconds"
        )

    @pytest.mark.parametrize("name", ["client_known_version", "max_hold_seconds"])
    async def test_a_parameter_given_twice_is_refused(self, client, task_id, name):
        """Which of the two would be a guess."""
        response = await client.get(f"{API}/tasks/{task_id}/long_poll?{name}=1&{name}=1")
        assert "more than once" in is_problem(response, 400, "invalid-parameter", name)

    async def test_unknown_parameters_are_ignored(self, client, task_id):
        """Clients add cache busters."""
        assert (await client.get(f"{API}/tasks/{task_id}/long_poll?_=123&x=y")).status_code == 200

    async def test_head_never_holds_and_options_names_the_methods(self, client, task_id):
        """Probes must not park."""
        head = await client.head(f"{API}/tasks/{task_id}/long_poll?client_known_version=1")
        assert (head.status_code, head.headers["etag"]) == (200, 'W/"v1"')
        options = await client.options(f"{API}/tasks/{task_id}/long_poll")
        assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
        assert "content-type" not in options.headers

    async def test_more_than_five_immediate_answers_a_second_are_refused(self, client, task_id):
        """A tight loop is told to hold instead."""
        url = f"{API}/tasks/{task_id}/long_poll?client_known_version=1&max_hold_seconds=0"
        answers = [await client.get(url) for _ in range(8)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert [answer.status_code for answer in answers[:5]] == [200] * 5
        assert refused
        assert "max_hold_seconds=25" in is_problem(refused[0], 429, "too-many-requests")
        assert refused[0].headers["retry-after"] == "1"

    @pytest.mark.parametrize(
        "query",
        [
            "client_known_version=1",
            "client_known_version=2&max_hold_seconds=0.001",
            "client_known_version=9",
        ],
    )
    async def test_a_loop_that_learns_nothing_is_refused_however_it_asks(
        self, client, service, task_id, query
    ):
        """A cursor that never moves, a hold too short to be one, a version that no row has."""
        await service.pool.run(step(task_id, Status.RUNNING))
        answers = [await client.get(f"{API}/tasks/{task_id}/long_poll?{query}") for _ in range(12)]
        assert 429 in [answer.status_code for answer in answers]

    async def test_a_client_that_follows_quick_changes_is_not_refused(
        self, client, service, task_id
    ):
        """Each of its polls learns something."""
        for version in range(1, 13):
            await service.pool.run(step(task_id, Status.RUNNING))
            response = await client.get(
                f"{API}/tasks/{task_id}/long_poll?client_known_version={version}"
            )
            assert (response.status_code, response.json()["version"]) == (200, version + 1)


@pytest.mark.parametrize("route", ["/long_poll", "/status", ""])
class TestIds:
    """Malformed, unknown and foreign ids, on every route."""

    @pytest.mark.parametrize(
        "text", ["abc", "1", "0199", "%00", "01a22caa-8b3c-7463-95d2-cdd668f18a5", "é"]
    )
    async def test_a_malformed_id_is_refused_with_the_rule(self, client, route, text):
        """It can't be anybody's."""
        assert "a UUID" in is_problem(
            await client.get(f"{API}/tasks/{text}{route}"), 400, "invalid-parameter", "task_id"
        )

    async def test_unknown_and_foreign_ids_get_the_same_404(self, client, service, settings, route):
        """Their bodies differ in the id alone."""
        mapped(settings)
        foreign, unknown = await stored(service, owner="alice"), new_task_id()
        headers = {"Authorization": "Test bob"}
        details = [
            is_problem(
                await client.get(f"{API}/tasks/{task}{route}", headers=headers),
                404,
                "task-not-found",
            ).replace(str(task), "ID")
            for task in (foreign, unknown)
        ]
        assert details[0] == details[1]
        assert (
            await client.get(
                f"{API}/tasks/{foreign}{route}", headers={"Authorization": "Test alice"}
            )
        ).status_code == 200

    @pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
    async def test_other_methods_are_refused_with_allow(self, client, task_id, route, method):
        """405 names what is allowed."""
        response = await client.request(method, f"{API}/tasks/{task_id}{route}")
        is_problem(response, 405, "method-not-allowed")
        assert response.headers["allow"] == "GET, HEAD, OPTIONS"


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
            ({"task": "sample.add", "kwargs": {"a": 1}, "queue": "other"}, 422, "out-of-bounds", "queue is other"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "priority": 101}, 422, "out-of-bounds", "priority is 101"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "max_attempts": 99}, 422, "out-of-bounds", "max_attempts is 99"),
            ({"task": "sample.add", "kwargs": {"a": 1}, "max_attempts": 0}, 422, "out-of-bounds", "max_attempts is 0"),
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


class TestWhoMay:
    """Credentials, tickets, and nobody."""

    @pytest.mark.parametrize(
        "headers",
        [
            {"Host": "example.org"},
            {"Host": "localhost.example.org"},
            {"Host": "10.0.0.1"},
            {"X-Forwarded-For": "1.2.3.4"},
            {"Forwarded": "for=1.2.3.4"},
            {"X-Real-IP": "1.2.3.4"},
            {"Via": "1.1 gateway"},
            {"Authorization": "Bearer ap_x_y"},
        ],
    )
    async def test_anonymous_use_needs_a_loopback_host_and_no_proxy(self, client, task_id, headers):
        """It is for development."""
        response = await client.get(f"{API}/tasks/{task_id}", headers=headers)
        is_problem(response, 401, "unauthenticated")
        assert response.headers["www-authenticate"].startswith("Bearer")

    async def test_anonymous_use_has_to_be_switched_on(self, client, settings, task_id):
        """The default is 401."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False}
        is_problem(await client.get(f"{API}/tasks/{task_id}"), 401, "unauthenticated")

    async def test_a_ticket_reads_its_task_and_nothing_else(
        self, client, service, settings, task_id
    ):
        """For the phone or page that must not hold the backend's token."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False}
        ticket = poll_ticket(task_id)
        assert (
            await client.get(f"{API}/tasks/{task_id}/long_poll?ticket={ticket}")
        ).status_code == 200
        other = await stored(service)
        is_problem(
            await client.get(f"{API}/tasks/{other}/long_poll?ticket={ticket}"),
            404,
            "task-not-found",
        )
        is_problem(
            await client.post(f"{API}/tasks/{task_id}/cancel?ticket={ticket}"), 403, "forbidden"
        )
        is_problem(
            await client.get(f"{API}/tasks/{task_id}?ticket={ticket}x"),
            401,
            "unauthenticated",
            "ticket",
        )

    async def test_a_ticket_expires(self, client, settings, task_id):
        """A bookmark is no credential."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "TICKET_SECONDS": 0.000001}
        is_problem(
            await client.get(f"{API}/tasks/{task_id}?ticket={poll_ticket(task_id)}"),
            401,
            "unauthenticated",
            "ticket",
        )

    async def test_a_project_maps_its_own_requests(self, client, service, settings):
        """Owner and scopes."""
        mapped(settings)
        mine = await stored(service, owner="alice")
        headers = {"Authorization": "Test alice read"}
        assert (await client.get(f"{API}/tasks/{mine}", headers=headers)).status_code == 200
        detail = is_problem(
            await client.post(f"{API}/tasks/{mine}/cancel", headers=headers), 403, "forbidden"
        )
        assert "'cancel'" in detail


class TestAround:
    """Health, unknown pages, headers, overload, draining."""

    async def test_healthz_and_readyz(self, client):
        """The link's state is in the body."""
        assert (await client.get("/healthz")).json() == {"status": "alive"}
        assert (await client.get("/readyz")).json() == {
            "status": "ready",
            "database": "up",
            "link": "up",
            "layer": "up",
            "bridge": "own",
            "held": 0,
        }

    async def test_an_unknown_page_is_a_problem_document(self, client):
        """Nothing under the API answers with HTML."""
        for path in (API, "/api", "/api/", "/api/v2/tasks", "/api/v1x"):
            is_problem(await client.get(path), 404, "not-found")
        for path in ("/", "/nope", "/tasks/", "/tasks/x/y/z", "/openapi.json/x"):
            is_problem(await client.get(f"{API}{path}"), 404, "not-found")

    async def test_every_answer_has_security_headers(self, client, task_id):
        """Problems as well."""
        for path in (f"/tasks/{task_id}", "/nope"):
            headers = (await client.get(f"{API}{path}")).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
            assert "default-src 'none'" in headers["content-security-policy"]

    async def test_beyond_the_limit_holds_are_shed(self, client, service, settings, task_id):
        """Answered at once, with a longer pause; a second limit refuses."""
        settings.ASYNCPOLL = {
            **settings.ASYNCPOLL,
            "MAX_HELD": 2,
            "MAX_SHORT_POLLS_PER_SECOND": 100,
        }
        url = f"{API}/tasks/{task_id}/long_poll?client_known_version=1"
        held = [asyncio.ensure_future(client.get(url)) for _ in range(2)]
        await aeventually(lambda: admission.held == 2)
        shed = (await client.get(url)).json()
        assert (shed["outcome"], shed["hold_granted_ms"]) == ("SHED", 0)
        assert shed["recommended_client_backoff_ms"] >= 2_000
        await service.pool.run(step(task_id, Status.RUNNING))
        await asyncio.gather(*held)
        assert (admission.held, admission.inside) == (0, 0)

    async def test_one_owner_can_not_take_every_place(self, client, service, settings, task_id):
        """MAX_HELD_PER_OWNER."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_HELD_PER_OWNER": 1}
        url = f"{API}/tasks/{task_id}/long_poll?client_known_version=1"
        held = asyncio.ensure_future(client.get(url))
        await aeventually(lambda: admission.held == 1)
        assert (await client.get(url)).json()["outcome"] == "SHED"
        held.cancel()
        await aeventually(lambda: admission.held == 0)

    async def test_draining_answers_every_held_request(self, client, task_id, monkeypatch):
        """200 with DRAINING; readiness turns false; a submission is stored, and not waited for."""
        monkeypatch.setattr(admission, "draining", False)
        url = f"{API}/tasks/{task_id}/long_poll?client_known_version=1"
        held = [asyncio.ensure_future(client.get(url)) for _ in range(20)]
        await aeventually(lambda: admission.held == 20)
        admission.begin_drain()
        bodies = [answer.json() for answer in await asyncio.gather(*held)]
        assert {body["outcome"] for body in bodies} == {"DRAINING"}
        assert len({body["recommended_client_backoff_ms"] for body in bodies}) > 5
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get(url)).json()["outcome"] == "DRAINING"
        body = {"task": "sample.add", "kwargs": {"a": 1}}
        stored = await client.post(f"{API}/tasks", json=body, headers={"Prefer": "wait=20"})
        assert (stored.status_code, stored.headers["preference-applied"]) == (202, "wait=0")
