"""Waiting for many tasks in one request: what it counts for, and what it costs."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import combinations

import pytest

from asyncpoll.contract import Status
from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tasks_app.store import step
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
