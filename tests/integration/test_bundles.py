"""Waiting for many tasks in one request: those that moved, and a problem of its own for each that can't be answered."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from itertools import combinations
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from asyncpoll.contract import Status
from tasks_app.api.identity import poll_ticket
from tasks_app.api.tickets import Ticket
from tasks_app.hold import bundles
from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tasks_app.store import NewTask, delete, enqueue, step
from tasks_app.wakeup.reader import Cause
from tasks_app.wakeup.service import WakeupService
from tests.integration.api_support import API, is_problem, mapped, stored
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)


async def several(service: WakeupService, count: int) -> list[UUID]:
    tasks = [
        NewTask(new_task_id(), "sample.add", "outside", "", 0, "[]", "{}", 3, 600.0)
        for _ in range(count)
    ]
    await service.pool.run(enqueue(tasks))
    return [task.id for task in tasks]


def address(*tasks: Any, **parameters: Any) -> str:
    given = [f"task={task}" for task in tasks]
    return f"{API}/tasks/long_poll?" + "&".join(
        [*given, *(f"{name}={value}" for name, value in parameters.items())]
    )


async def poll(client: httpx.AsyncClient, *tasks: Any, **parameters: Any) -> Any:
    response = await client.get(address(*tasks, **parameters))
    assert response.status_code == 200, response.text
    return response.json()


async def held(client: httpx.AsyncClient, *tasks: Any, **parameters: Any) -> asyncio.Task[Any]:
    """A poll that is held already, with every row read."""
    before = admission.held
    asked = asyncio.ensure_future(poll(client, *tasks, **parameters))
    await aeventually(lambda: admission.held == before + 1)
    return asked


def moved(body: Any) -> dict[str, int]:
    return {task["task_id"]: task["version"] for task in body["tasks"]}


class TestWaiting:
    """What ends the hold."""

    async def test_a_first_poll_brings_every_task_in_one_read(self, client, service, statements):
        """A hundred ids are one statement."""
        tasks = await several(service, 100)
        statements.clear()
        body = await poll(client, *tasks)
        assert moved(body) == {str(task): 1 for task in tasks}
        assert (body["outcome"], body["should_continue_polling"]) == ("CHANGED", True)
        assert {task["outcome"] for task in body["tasks"]} == {"CHANGED"}
        assert body["client_read_timeout_ms"] == body["hold_granted_ms"] + 10_000
        assert statements == ["read"]

    async def test_only_those_that_moved_are_answered(self, client, service):
        """One held request, one place, and the commit of one task ends it."""
        tasks = await several(service, 20)
        request = await held(client, *(f"{task}:1" for task in tasks))
        await service.pool.run(step(tasks[7], Status.RUNNING, progress=0.5))
        body = await request
        assert moved(body) == {str(tasks[7]): 2}
        assert body["tasks"][0]["progress"] == 0.5
        assert admission.held == admission.inside == 0

    async def test_it_lingers_for_others_that_move(self, client, service):
        """A second commit soon after the first comes along; the rest is not waited for."""
        tasks = await several(service, 3)
        request = await held(client, *(f"{task}:1" for task in tasks), linger_ms=5_000)
        await service.pool.run(step(tasks[0], Status.RUNNING))
        await aeventually(lambda: bundle_of(service).has_news())
        assert not request.done()
        await service.pool.run(step(tasks[2], Status.SUCCESS, result="7"))
        await aeventually(lambda: bundle_of(service).tasks[tasks[2]].moved)
        await service.pool.run(step(tasks[1], Status.RUNNING))
        body = await request
        assert moved(body) == {str(task): 2 for task in tasks}
        assert body["tasks"][2]["result"] == 7
        assert body["hold_duration_ms"] < 5_000, "all have moved: there is nothing to linger for"

    async def test_without_linger_the_first_is_answered_alone(self, client, service):
        """The default."""
        tasks = await several(service, 2)
        request = await held(client, *(f"{task}:1" for task in tasks))
        await service.pool.run(step(tasks[0], Status.RUNNING))
        assert moved(await request) == {str(tasks[0]): 2}

    async def test_a_task_that_moves_twice_while_it_lingers_is_answered_as_it_is_now(
        self, client, service
    ):
        """The newest version, once."""
        tasks = await several(service, 2)
        request = await held(client, *(f"{task}:1" for task in tasks), linger_ms=5_000)
        for _ in range(3):
            await service.pool.run(step(tasks[0], Status.RUNNING))
        await service.pool.run(step(tasks[0], Status.SUCCESS, result="1"))
        await aeventually(lambda: bundle_of(service).tasks[tasks[0]].row.is_terminal)
        await service.pool.run(step(tasks[1], Status.RUNNING))
        body = await request
        assert moved(body) == {str(tasks[0]): 5, str(tasks[1]): 2}
        assert body["tasks"][0]["outcome"] == "TERMINAL"

    async def test_it_never_lingers_beyond_the_hold(self, client, service):
        """The ceiling of a gateway is a ceiling."""
        tasks = await several(service, 2)
        request = await held(
            client, *(f"{task}:1" for task in tasks), linger_ms=5_000, max_hold_seconds=1
        )
        await service.pool.run(step(tasks[0], Status.RUNNING))
        body = await request
        assert moved(body) == {str(tasks[0]): 2}
        assert body["hold_duration_ms"] < body["hold_granted_ms"] + 900

    async def test_a_hold_that_runs_out_brings_nothing(self, client, service, statements):
        """And costs no statement where the link is trusted."""
        tasks = [f"{task}:1" for task in await several(service, 50)]
        await poll(client, *tasks, max_hold_seconds=0.05)
        statements.clear()
        for _ in range(5):
            body = await poll(client, *tasks, max_hold_seconds=0.21)
            assert (body["tasks"], body["problems"], body["outcome"]) == ([], [], "STILL_RUNNING")
            assert 50 <= body["recommended_client_backoff_ms"] <= 150
        assert statements == []

    async def test_a_hold_of_zero_answers_at_once(self, client, service):
        """With what there is."""
        tasks = await several(service, 2)
        body = await poll(client, f"{tasks[0]}:1", tasks[1], max_hold_seconds=0)
        assert (moved(body), body["hold_granted_ms"]) == ({str(tasks[1]): 1}, 0)
        assert (await client.head(address(f"{tasks[0]}:1"))).status_code == 200

    async def test_when_all_are_over_there_is_nothing_to_poll_for(self, client, service):
        """TERMINAL for each and for the request."""
        tasks = await several(service, 2)
        for task in tasks:
            await service.pool.run(step(task, Status.SUCCESS, result="1"))
        body = await poll(client, *tasks)
        assert (body["outcome"], body["should_continue_polling"]) == ("TERMINAL", False)
        assert [task["result"] for task in body["tasks"]] == [1, 1]

    async def test_large_results_are_read_together_and_a_few_at_a_time(
        self, client, service, statements, settings, monkeypatch
    ):
        """One statement for all that are answered; what would be too much comes with the next request."""
        monkeypatch.setattr(bundles, "_MOST_RESULT_BYTES", 2 * settings_limit(settings))
        tasks = await several(service, 3)
        text = json.dumps([uuid4().hex for _ in range(5_000)])
        for task in tasks:
            await service.pool.run(step(task, Status.SUCCESS, result=text))
        statements.clear()
        body = await poll(client, *tasks)
        assert [len(task["result"]) for task in body["tasks"]] == [5_000] * 2
        assert (body["should_continue_polling"], body["outcome"]) == (True, "CHANGED")
        assert statements.count("read_results") == 1
        rest = await poll(client, *(set(map(str, tasks)) - moved(body).keys()))
        assert (len(rest["tasks"]), rest["outcome"]) == (1, "TERMINAL")

    async def test_a_version_that_the_row_never_had_is_reset(self, client, service):
        """For that task."""
        (task,) = await several(service, 1)
        body = await poll(client, f"{task}:9")
        assert (moved(body), body["tasks"][0]["reset"]) == ({str(task): 1}, True)

    async def test_draining_answers_also_what_lingers(self, client, service, monkeypatch):
        """At once, with what has moved."""
        monkeypatch.setattr(admission, "draining", False)
        tasks = [f"{task}:1" for task in await several(service, 2)]
        lingering = await held(client, *tasks, linger_ms=5_000, max_hold_seconds=25)
        waiting = await held(client, *(f"{task}:1" for task in await several(service, 2)))
        await service.pool.run(step(tasks[0].partition(":")[0], Status.RUNNING))
        await aeventually(lambda: any(b.has_news() for b in bundles_of(service)))
        admission.begin_drain()
        body = await lingering
        assert (len(body["tasks"]), body["outcome"]) == (1, "CHANGED")
        assert (await waiting)["outcome"] == "DRAINING"

    async def test_no_commit_is_missed_however_they_fall(self, client, service, emitted):
        """Each is answered because of its own hint or read, never because a sweep came by."""
        tasks = await several(service, 20)
        known = {str(task): 0 for task in tasks}
        waits = dict(known)

        async def work(task: UUID) -> None:
            for _ in range(8):
                await service.pool.run(step(task, Status.RUNNING))
                await asyncio.sleep(random.uniform(0, 0.02))
            await service.pool.run(step(task, Status.SUCCESS, result="1"))

        working = asyncio.gather(*(work(task) for task in tasks))
        while waits:
            given = (f"{task}:{version}" for task, version in waits.items())
            body = await poll(client, *given, linger_ms=random.choice([0, 5, 30]))
            known.update(moved(body))
            over = {t["task_id"] for t in body["tasks"] if t["outcome"] == "TERMINAL"}
            waits = {task: known[task] for task in waits if task not in over}
        await working
        assert set(known.values()) == {10}
        causes = {facts["cause"] for facts in emitted.of("hold.answered")}
        assert causes <= {Cause.FIRST, Cause.HINT}


class TestTrust:
    """The same rules as for a single task."""

    async def test_without_trust_the_hold_is_confirmed_by_one_read(
        self, client, service, statements
    ):
        """What went unheard is found when the hold runs out, at the latest."""
        tasks = await several(service, 30)
        await service.listener.stop()
        await aeventually(lambda: not service.hub.trust.active)
        await service.sweeper.stop()
        statements.clear()
        request = await held(client, *(f"{task}:1" for task in tasks), max_hold_seconds=0.5)
        await aeventually(lambda: bundle_of(service).is_read())
        await service.pool.run(step(tasks[3], Status.RUNNING))
        assert moved(await request) == {str(tasks[3]): 2}
        assert statements == ["read", "step", "read"]

    async def test_a_snapshot_that_a_hint_discarded_is_read_again(
        self, client, service, statements
    ):
        """Only that one."""
        tasks = await several(service, 10)
        await poll(client, *(f"{task}:1" for task in tasks), max_hold_seconds=0.01)
        await service.pool.run(step(tasks[4], Status.RUNNING))
        await aeventually(lambda: service.hub.topics.get(tasks[4]) is None)
        reads = []
        original = service.hub.reader._read

        def noted(ids):
            reads.append(list(ids))
            return original(ids)

        service.hub.reader._read = noted
        assert moved(await poll(client, *(f"{task}:1" for task in tasks))) == {str(tasks[4]): 2}
        assert reads == [[tasks[4]]]

    async def test_a_database_that_is_away_is_said_of_the_request_or_of_the_task(
        self, client, service, monkeypatch
    ):
        """503 when nothing is known; a problem where the rest is."""
        known, unknown = await several(service, 2)
        await poll(client, f"{known}:1", max_hold_seconds=0.01)
        never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(service.hub.reader, "_read", lambda ids: never)
        monkeypatch.setattr(bundles, "FIRST_READ_SECONDS", 0.1)
        is_problem(await client.get(address(unknown, max_hold_seconds=0)), 503, "unavailable")
        body = await poll(client, f"{known}:1", unknown, max_hold_seconds=0)
        assert [(p["task"], p["status"]) for p in body["problems"]] == [(str(unknown), 503)]
        assert body["should_continue_polling"]
        never.cancel()


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


class TestLimits:
    """One place, and no spinning."""

    async def test_a_bundle_takes_one_place(self, client, service, settings):
        """Whatever it asks for; beyond the limit it is shed like any hold."""
        settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_HELD": 1}
        tasks = [f"{task}:1" for task in await several(service, 100)]
        request = await held(client, *tasks)
        assert (admission.held, admission.inside) == (1, 1)
        body = await poll(client, *tasks)
        assert (body["outcome"], body["hold_granted_ms"]) == ("SHED", 0)
        assert body["recommended_client_backoff_ms"] >= 2_000
        request.cancel()

    @pytest.mark.parametrize("lingers", [False, True])
    async def test_a_client_that_hangs_up_leaves_nothing_behind(self, client, service, lingers):
        """No waiter, no place, and no topic that is not worth keeping."""
        tasks = await several(service, 50)
        gone = new_task_id()
        request = await held(
            client, *(f"{task}:1" for task in tasks), gone, linger_ms=5_000 * lingers
        )
        await aeventually(lambda: bundle_of(service).is_read())
        if lingers:
            await service.pool.run(step(tasks[0], Status.RUNNING))
            await aeventually(lambda: bundle_of(service).has_news())
            assert not request.done()
        tasks_before = len(asyncio.all_tasks())
        request.cancel()
        await aeventually(lambda: admission.inside == 0)
        assert (service.hub.waiting, admission.held) == (0, 0)
        assert gone not in service.hub.topics
        assert len(asyncio.all_tasks()) < tasks_before

    async def test_a_held_bundle_costs_no_task_and_no_future_per_id(self, client, service):
        """One object is registered with all topics."""
        tasks = [f"{task}:1" for task in await several(service, 100)]
        request = await held(client, *tasks)
        assert len({id(w) for t in service.hub.topics.values() for w in t.waiters}) == 1
        assert len(service.hub.topics) == 100
        request.cancel()

    async def test_a_loop_that_learns_nothing_is_refused(self, client, service):
        """The same limit as for a single task."""
        tasks = [f"{task}:1" for task in await several(service, 3)]
        answers = [await client.get(address(*tasks, max_hold_seconds=0)) for _ in range(12)]
        assert [answer.status_code for answer in answers[:5]] == [200] * 5
        assert 429 in [answer.status_code for answer in answers]
        missing = new_task_id()
        answers = [await client.get(address(missing)) for _ in range(12)]
        assert 429 in [answer.status_code for answer in answers]

    async def test_other_sets_of_the_same_tasks_are_no_other_loop(self, client, service):
        """Six tasks have 57 sets of two or more."""
        tasks = [f"{task}:1" for task in await several(service, 6)]
        sets = [some for size in range(2, 7) for some in combinations(tasks, size)]
        answers = [await client.get(address(*some, max_hold_seconds=0)) for some in sets]
        assert Counter(answer.status_code for answer in answers)[429] > len(sets) / 2

    async def test_an_id_of_nobody_s_does_not_make_it_another_loop(self, client, service):
        """It could be a new one each time."""
        (task,) = await several(service, 1)
        answers = [
            await client.get(address(f"{task}:1", new_task_id(), max_hold_seconds=0))
            for _ in range(12)
        ]
        assert 429 in [answer.status_code for answer in answers]

    async def test_a_client_that_follows_is_not_refused(self, client, service):
        """Each of its polls learns something."""
        tasks = await several(service, 2)
        for version in range(1, 13):
            await service.pool.run(step(tasks[0], Status.RUNNING))
            body = await poll(client, f"{tasks[0]}:{version}", f"{tasks[1]}:1")
            assert moved(body) == {str(tasks[0]): version + 1}


def bundles_of(service: WakeupService) -> list[Any]:
    return list({id(w): w for t in service.hub.topics.values() for w in t.waiters}.values())


def bundle_of(service: WakeupService) -> Any:
    """The one that is held."""
    (bundle,) = bundles_of(service)
    return bundle


def settings_limit(settings: Any) -> int:
    return settings.ASYNCPOLL.get("MAX_RESULT_BYTES", 1_048_576)
