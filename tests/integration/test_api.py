"""Waiting over the wire, as the protocol page has it."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest

from asyncpoll.contract import Status
from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tasks_app.store import step
from tests.integration.api_support import API, is_problem, mapped, stored
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)


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
        "text",
        [
            *("abc", "1", "0199", "%00", "01a22caa-8b3c-7463-95d2-cdd668f18a5", "é"),
            "{01a22caa-8b3c-7463-95d2-cdd668f18a5e}",
            "urn:uuid:01a22caa-8b3c-7463-95d2-cdd668f18a5e",
            "01a22caa8b3c746395d2cdd668f18a5e",
            "01a22caa-8b3c746395d2cdd668f18a-5e",
            "01a22caa-8b3c-7463-95d2-cdd668f1_8_5",
        ],
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
