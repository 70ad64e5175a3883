"""Waiting for many tasks in one request: those that moved, as they are when the answer leaves."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any
from uuid import UUID, uuid4

import pytest

from asyncpoll.contract import Status
from tasks_app.hold import bundles
from tasks_app.hold.admission import admission
from tasks_app.store import step
from tasks_app.wakeup.reader import Cause
from tests.integration.api_support import is_problem
from tests.integration.bundle_support import (
    address,
    bundle_of,
    bundles_of,
    held,
    moved,
    poll,
    several,
)
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)


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


def settings_limit(settings: Any) -> int:
    return settings.ASYNCPOLL.get("MAX_RESULT_BYTES", 1_048_576)
