"""Waiting for many tasks in one request: a problem of its own for each that can't be answered."""

from __future__ import annotations

import asyncio
import time

import pytest

from asyncpoll.contract import Status
from tasks_app.api.identity import poll_ticket
from tasks_app.api.tickets import Ticket
from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tasks_app.store import delete, step
from tests.integration.api_support import API, is_problem, mapped, stored
from tests.integration.bundle_support import (
    address,
    bundle_of,
    held,
    moved,
    poll,
    several,
)
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)


class TestProblems:
    """An id that can't be answered never fails the rest."""

    async def test_each_has_a_problem_of_its_own(self, client, service, settings):
        """Malformed, missing and foreign ids, and malformed versions."""
        mapped(settings)
        mine, foreign = await stored(service, owner="bob"), await stored(service, owner="alice")
        missing = new_task_id()
        given = [mine, foreign, missing, "abc", f"{mine}:x", f"{missing}:-1", "", ":3", "%00"]
        response = await client.get(address(*given), headers={"Authorization": "Test bob"})
        body = response.json()
        assert moved(body) == {str(mine): 1}
        problems = {problem["task"]: problem for problem in body["problems"]}
        assert {task: problem["status"] for task, problem in problems.items()} == {
            str(foreign): 404,
            str(missing): 404,
            "abc": 400,
            f"{mine}:x": 400,
            f"{missing}:-1": 400,
            "": 400,
            ":3": 400,
            "\x00": 400,
        }
        said = [{**problems[str(task)], "task": "", "detail": ""} for task in (foreign, missing)]
        assert said[0] == said[1]
        assert problems[str(foreign)]["type"] == "/problems/task-not-found"

    async def test_a_missing_id_does_not_end_the_hold_of_the_others(self, client, service):
        """A client that goes on asking for one would poll without a pause."""
        (task,) = await several(service, 1)
        request = await held(client, f"{task}:1", f"{new_task_id()}:1", "abc")
        await aeventually(lambda: bundle_of(service).is_read())
        assert not request.done()
        await service.pool.run(step(task, Status.RUNNING))
        body = await request
        assert (moved(body), len(body["problems"])) == ({str(task): 2}, 2)

    async def test_a_foreign_id_is_not_followed(self, client, service, settings, statements):
        """Its commits and its end say nothing, and memory is not asked about it: the time would tell."""
        mapped(settings)
        mine, foreign = await stored(service, owner="bob"), await stored(service, owner="alice")
        alice, bob = ({"Authorization": f"Test {name}"} for name in ("alice", "bob"))
        await client.get(
            f"{API}/tasks/{foreign}/long_poll?client_known_version=1&max_hold_seconds=0.01",
            headers=alice,
        )
        statements.clear()
        request = asyncio.ensure_future(
            client.get(address(f"{mine}:1", f"{foreign}:1"), headers=bob)
        )
        await aeventually(lambda: admission.held == 1 and bundle_of(service).is_read())
        assert statements == ["read"]
        assert bundle_of(service).tasks[foreign].lost
        await service.pool.run(step(foreign, Status.SUCCESS, result="1"))
        await service.pool.run(delete([foreign]))
        await aeventually(lambda: statements.count("read") >= 2)
        assert not request.done()
        await service.pool.run(step(mine, Status.RUNNING))
        body = (await request).json()
        assert moved(body) == {str(mine): 2}
        assert [problem["status"] for problem in body["problems"]] == [404]

    async def test_a_task_that_is_deleted_while_held_ends_it_with_410(self, client, service):
        """For whoever waited; 404 afterwards."""
        kept, deleted = await several(service, 2)
        request = await held(client, f"{kept}:1", f"{deleted}:1")
        await aeventually(lambda: bundle_of(service).is_read())
        await service.pool.run(delete([deleted]))
        body = await request
        assert [(p["task"], p["status"]) for p in body["problems"]] == [(str(deleted), 410)]
        assert (body["tasks"], body["should_continue_polling"]) == ([], True)
        assert body["hold_duration_ms"] < body["hold_granted_ms"], "it did not run out"
        later = await poll(client, kept, deleted)
        assert [problem["status"] for problem in later["problems"]] == [404]

    async def test_nothing_that_can_be_answered_is_answered_at_once(self, client, service):
        """There is nothing to hold for."""
        body = await poll(client, new_task_id(), "abc")
        assert (body["outcome"], body["should_continue_polling"]) == ("TERMINAL", False)
        assert len(body["problems"]) == 2
        assert service.hub.topics == {}

    async def test_an_id_given_twice_is_answered_once(self, client, service):
        """With the lower of its versions, which is safe: it may be told something again, and misses nothing."""
        (task,) = await several(service, 1)
        await service.pool.run(step(task, Status.RUNNING))
        for given in (f"{task}:2", f"{task}:1"), (f"{str(task).upper()}:1", f"{task.hex}:2"):
            assert moved(await poll(client, *given)) == {str(task): 2}

    @pytest.mark.parametrize("count", [0, 101])
    async def test_too_many_ids_or_none_are_refused(self, client, count):
        """400, naming the rule."""
        response = await client.get(address(*(new_task_id() for _ in range(count))))
        assert "1 to 100 times" in is_problem(response, 400, "invalid-parameter", "task")

    async def test_an_id_that_names_no_version_and_a_huge_one_are_versions(self, client, service):
        """0, and one that no row has."""
        tasks = await several(service, 2)
        body = await poll(client, f"{tasks[0]}:", f"{tasks[1]}:{'9' * 400}")
        assert [task.get("reset", False) for task in body["tasks"]] == [False, True]

    @pytest.mark.parametrize("linger", ["-1", "1.5", "abc", "", "1e3", "%EF%BC%91"])
    async def test_a_malformed_linger_is_refused(self, client, service, linger):
        """A whole number of milliseconds."""
        (task,) = await several(service, 1)
        response = await client.get(address(task, linger_ms=linger))
        is_problem(response, 400, "invalid-parameter", "linger_ms")

    async def test_parameters_given_twice_and_other_methods_are_refused(self, client, service):
        """As everywhere."""
        (task,) = await several(service, 1)
        for name in ("linger_ms", "max_hold_seconds"):
            response = await client.get(f"{address(task)}&{name}=1&{name}=1")
            is_problem(response, 400, "invalid-parameter", name)
        response = await client.post(address(task))
        is_problem(response, 405, "method-not-allowed")
        assert response.headers["allow"] == "GET, HEAD, OPTIONS"

    async def test_a_ticket_answers_for_its_task_alone(self, client, service, settings):
        """Everything else is missing to it."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False}
        mine, other = await several(service, 2)
        body = await poll(client, mine, other, ticket=poll_ticket(mine))
        assert moved(body) == {str(mine): 1}
        assert [(p["task"], p["status"]) for p in body["problems"]] == [(str(other), 404)]

    async def test_tickets_answer_for_their_tasks_together(self, client, service, settings):
        """One that is not valid opens nothing and takes nothing from the others; with none that is, 401."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False}
        first, second, other = await several(service, 3)
        spoilt = f"{poll_ticket(other)}x"
        tickets = [poll_ticket(first), spoilt, poll_ticket(second)]
        body = await poll(client, first, second, other, ticket="&ticket=".join(tickets))
        assert moved(body) == {str(first): 1, str(second): 1}
        assert [(p["task"], p["status"]) for p in body["problems"]] == [(str(other), 404)]
        response = await client.get(f"{address(first)}&ticket={spoilt}&ticket=x")
        is_problem(response, 401, "unauthenticated", "ticket")

    async def test_more_tickets_than_tasks_can_be_asked_for_are_refused(
        self, client, service, settings
    ):
        """Each costs a signature to check."""
        (task,) = await several(service, 1)
        too_many = f"&ticket={poll_ticket(task)}" * 101
        is_problem(await client.get(address(task) + too_many), 401, "unauthenticated", "ticket")

    async def test_the_ticket_that_ends_first_ends_what_is_held_with_all(
        self, client, service, monkeypatch
    ):
        """They are looked at again when it wakes."""
        first, second = await several(service, 2)
        now = time.time()
        tickets = {"a": Ticket(first, "", now + 1_000), "b": Ticket(second, "", now + 100)}
        monkeypatch.setattr("tasks_app.api.identity.read_ticket", tickets.get)
        about = address(f"{first}:1", f"{second}:1")
        asked = asyncio.ensure_future(client.get(f"{about}&ticket=a&ticket=b"))
        await aeventually(lambda: admission.held == 1)
        monkeypatch.setattr("time.time", lambda: now + 200)
        await service.pool.run(step(first, Status.RUNNING))
        is_problem(await asked, 401, "unauthenticated")
