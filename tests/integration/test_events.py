"""Every milestone since the last answer, also for a client that was away while they happened."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from asyncpoll.contract import Status
from tasks_app.hold import replay
from tasks_app.hold.admission import admission
from tasks_app.models import TaskEvent
from tasks_app.models.task import new_task_id
from tasks_app.store import delete, step
from tests.integration.api_support import API, is_problem, mapped, stored
from tests.support import aeventually

pytestmark = pytest.mark.django_db(transaction=True)


async def poll(client: httpx.AsyncClient, task_id: Any, **parameters: Any) -> Any:
    response = await client.get(f"{API}/tasks/{task_id}/events", params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


def versions(body: Any) -> list[int]:
    return [event["version"] for event in body["events"]]


async def reported(service, task_id, count, **facts):
    for _ in range(count):
        await service.pool.run(step(task_id, Status.RUNNING, **facts))


async def test_every_milestone_since_is_told_once(client, service):
    """In order, with what each had to say."""
    task_id = await stored(service)
    await service.pool.run(
        step(task_id, Status.RUNNING, progress=0.5, message="half", data='{"files": [1, 2]}')
    )
    await service.pool.run(step(task_id, Status.SUCCESS, result="42"))
    body = await poll(client, task_id)
    assert [event["kind"] for event in body["events"]] == ["enqueued", "progress", "succeeded"]
    assert body["events"][1] == {
        "version": 2, "kind": "progress", "at": body["events"][1]["at"], "attempt": 1,
        "progress": 0.5, "message": "half", "data": {"files": [1, 2]},
    }  # fmt: skip
    assert body["events"][1]["at"].endswith("Z")
    assert (body["gap"], body["next_after"], body["version"]) == (False, 3, 3)
    assert (body["outcome"], body["result"], body["should_continue_polling"]) == (
        "TERMINAL",
        42,
        False,
    )
    assert versions(await poll(client, task_id, after=1)) == [2, 3]
    over = await poll(client, task_id, after=3)
    assert (versions(over), over["gap"], over["next_after"]) == ([], False, 3)


async def test_it_is_held_until_there_is_something_newer(client, service, statements):
    """And costs a statement only then."""
    task_id = await stored(service)
    held = asyncio.ensure_future(poll(client, task_id, after=1))
    await aeventually(lambda: admission.held == 1)
    assert "read_events" not in statements
    await reported(service, task_id, 1, message="cleaned")
    body = await held
    assert (versions(body), body["events"][0]["message"]) == ([2], "cleaned")
    assert statements.count("read_events") == 1


async def test_a_hold_that_runs_out_tells_nothing(client, service, statements):
    """The cursor stays where it is."""
    task_id = await stored(service)
    body = await poll(client, task_id, after=1, max_hold_seconds=0.05)
    assert (body["outcome"], versions(body), body["gap"], body["next_after"]) == (
        "STILL_RUNNING",
        [],
        False,
        1,
    )
    assert "read_events" not in statements


@pytest.mark.parametrize(("after", "gap"), [(0, True), (1, True), (2, False), (3, False)])
async def test_a_gap_says_that_older_ones_were_pruned(client, service, after, gap):
    """Of the history before version 3, nothing is left."""
    task_id = await stored(service)
    await reported(service, task_id, 3)
    await TaskEvent.objects.filter(task_id=task_id, version__lt=3).adelete()
    body = await poll(client, task_id, after=after)
    assert (versions(body), body["gap"]) == (([3, 4] if after < 3 else [4]), gap)


async def test_a_history_that_is_gone_altogether_is_a_gap(client, service):
    """And the cursor moves on, so that a client does not ask for it for ever."""
    task_id = await stored(service)
    await reported(service, task_id, 3)
    await TaskEvent.objects.all().adelete()
    body = await poll(client, task_id, after=2)
    assert (versions(body), body["gap"], body["next_after"]) == ([], True, 4)


async def test_a_cursor_that_the_task_never_had_is_reset(client, service):
    """The history is told from its beginning."""
    task_id = await stored(service)
    await reported(service, task_id, 1)
    for after in (9, 10**30):
        body = await poll(client, task_id, after=after)
        assert (body["reset"], versions(body), body["gap"]) == (True, [1, 2], False)


async def test_a_long_history_comes_in_pieces(client, service, monkeypatch, settings):
    """The next piece at once; the end is not the end before everything was told."""
    monkeypatch.setattr(replay, "_MOST_EVENTS", 4)
    task_id = await stored(service)
    await reported(service, task_id, 8)
    await service.pool.run(step(task_id, Status.SUCCESS, result="1"))
    seen, after, polls = [], 0, 0
    while True:
        body = await poll(client, task_id, after=after)
        seen += versions(body)
        after, polls = body["next_after"], polls + 1
        if not body["should_continue_polling"]:
            break
    assert (seen, polls) == (list(range(1, 11)), 3)


async def test_much_data_comes_in_pieces(client, service, monkeypatch):
    """At least one version with each answer, however large it is."""
    monkeypatch.setattr(replay, "_MOST_DATA_BYTES", 250)
    task_id = await stored(service)
    await reported(service, task_id, 5, data='{"text": "' + "x" * 100 + '"}')
    pieces, after = [], 0
    while after < 6:
        body = await poll(client, task_id, after=after, max_hold_seconds=0.05)
        pieces.append(versions(body))
        after = body["next_after"]
    assert pieces == [[1, 2, 3], [4, 5], [6]]
    monkeypatch.setattr(replay, "_MOST_DATA_BYTES", 1)
    assert versions(await poll(client, task_id, after=3)) == [4]


async def test_a_client_that_follows_misses_nothing(client, service):
    """Whatever falls between two of its polls."""
    task_id = await stored(service)

    async def work():
        await reported(service, task_id, 40)
        await service.pool.run(step(task_id, Status.SUCCESS, result="1"))

    working = asyncio.ensure_future(work())
    seen, after = [], 0
    while True:
        body = await poll(client, task_id, after=after)
        assert not body["gap"]
        seen += versions(body)
        after = body["next_after"]
        if not body["should_continue_polling"]:
            break
    await working
    assert seen == list(range(1, 43))


async def test_deleting_a_task_ends_its_hold(client, service):
    """410, as for any other wait."""
    task_id = await stored(service)
    held = asyncio.ensure_future(client.get(f"{API}/tasks/{task_id}/events?after=1"))
    await aeventually(lambda: admission.held == 1)
    await aeventually(lambda: service.hub.topics[task_id].snapshot)
    await service.pool.run(delete([task_id]))
    is_problem(await held, 410, "task-gone")


@pytest.mark.parametrize("after", ["-1", "abc", "", "1.5", "NaN"])
async def test_a_malformed_cursor_is_refused(client, service, after):
    """A whole number from 0."""
    response = await client.get(f"{API}/tasks/{await stored(service)}/events?after={after}")
    is_problem(response, 400, "invalid-parameter", "after")


async def test_missing_foreign_and_malformed_ids_are_refused(client, service, settings):
    """The same as everywhere."""
    mapped(settings)
    foreign = await stored(service, owner="alice")
    headers = {"Authorization": "Test bob"}
    details = [
        is_problem(
            await client.get(f"{API}/tasks/{task_id}/events", headers=headers),
            404,
            "task-not-found",
        ).replace(str(task_id), "ID")
        for task_id in (foreign, new_task_id())
    ]
    assert details[0] == details[1]
    response = await client.get(f"{API}/tasks/abc/events", headers=headers)
    is_problem(response, 400, "invalid-parameter", "task_id")
    response = await client.post(f"{API}/tasks/{foreign}/events", headers=headers)
    is_problem(response, 405, "method-not-allowed")
