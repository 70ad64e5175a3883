"""Who may, and what is around the routes."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from asyncpoll.contract import Status
from tasks_app.api.identity import poll_ticket
from tasks_app.api.probe import probe_ticket
from tasks_app.api.tickets import read_ticket
from tasks_app.hold.admission import admission
from tasks_app.store import migrated, step
from tests.integration.api_support import API, is_problem, mapped, stored
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)


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

    async def test_a_database_that_lacks_migrations_is_not_ready(self, client, monkeypatch):
        """With the command that helps."""
        monkeypatch.setattr(migrated, "_needed", lambda: frozenset({"0001_initial", "9999_new"}))
        answer = await client.get("/readyz")
        said = answer.json()
        assert (answer.status_code, said["status"]) == (503, "unavailable")
        assert said["database"] == "not migrated"
        assert said["reason"] == (
            "The database 'default' lacks 1 of the migrations of tasks_app, from 9999_new on; run manage.py migrate."
        )

    async def test_an_unknown_page_is_a_problem_document(self, client):
        """Nothing under the API answers with HTML."""
        for path in (API, "/api", "/api/", "/api/v2/tasks", "/api/v1x"):
            said = is_problem(await client.get(path), 404, "not-found")
            assert said == f"There is nothing at {path}; see {API}/docs."
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

    async def test_a_client_that_ignores_the_pause_after_shed_is_refused(
        self, client, settings, task_id
    ):
        """After as many as a short poll would get; one that waits as it was told to is not."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_HELD": 1}
        url = f"{API}/tasks/{task_id}/long_poll?client_known_version=1"
        held = asyncio.ensure_future(client.get(url))
        await aeventually(lambda: admission.held == 1)
        answers = [await client.get(url) for _ in range(12)]
        assert [answer.json().get("outcome") for answer in answers[:5]] == ["SHED"] * 5
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused and refused[0].headers["retry-after"] == "5"
        assert "recommended_client_backoff_ms" in is_problem(refused[0], 429, "too-many-requests")
        assert (await client.get(url.replace("=1", "=9"))).status_code == 429
        held.cancel()

    async def test_one_owner_can_not_take_every_place(self, client, service, settings, task_id):
        """MAX_HELD_PER_OWNER."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_HELD_PER_OWNER": 1}
        url = f"{API}/tasks/{task_id}/long_poll?client_known_version=1"
        held = asyncio.ensure_future(client.get(url))
        await aeventually(lambda: admission.held == 1)
        assert (await client.get(url)).json()["outcome"] == "SHED"
        held.cancel()
        await aeventually(lambda: admission.held == 0)

    @pytest.mark.parametrize("named", ["alice", None])
    async def test_tickets_of_one_owner_can_not_take_every_place(
        self, client, service, settings, named
    ):
        """One limit for all of its tasks, and for all without an owner; its own token and others' tickets have places."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_HELD_PER_OWNER": 2, "MAX_HELD": 4}

        async def ask(owner):
            task_id = await stored(service, owner=owner)
            return f"{API}/tasks/{task_id}/long_poll?client_known_version=1&ticket={poll_ticket(task_id, named and owner)}"

        held = [asyncio.ensure_future(client.get(await ask("alice"))) for _ in range(2)]
        await aeventually(lambda: admission.held == 2)
        assert (await client.get(await ask("alice"))).json()["outcome"] == "SHED"
        named = "bob"
        held.append(asyncio.ensure_future(client.get(await ask("bob"))))
        await aeventually(lambda: admission.held == 3)
        for request in held:
            request.cancel()

    async def test_a_probe_takes_no_owners_place(self, client, service, settings, task_id):
        """Not even that of tasks without an owner; and they take none of its own."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_HELD_PER_OWNER": 1}
        paths = (
            f"probe?seconds=20&ticket={probe_ticket()}",
            f"tasks/{task_id}/long_poll?client_known_version=1",
            f"probe?seconds=20&ticket={probe_ticket()}",
        )
        held = []
        for path in paths:
            held.append(asyncio.ensure_future(client.get(f"{API}/{path}")))
            await aeventually(lambda: admission.held == len(held))
        for request in held:
            request.cancel()
        await aeventually(lambda: admission.held == 0)

    async def test_the_ticket_of_a_submission_counts_for_its_owner(self, client, service):
        """Two of one owner's tasks are one crowd, and do not say whose."""
        body = {"task": "sample.add", "kwargs": {"a": 1}}
        made = [(await client.post(f"{API}/tasks", json=body)).json() for _ in range(2)]
        crowds = {read_ticket(each["poll_ticket"]).crowd for each in made}
        assert len(crowds) == 1
        assert read_ticket(poll_ticket(UUID(made[0]["task_id"]), "else")).crowd not in crowds
        assert read_ticket(poll_ticket(UUID(made[0]["task_id"]))).task_id == UUID(
            made[0]["task_id"]
        )

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
