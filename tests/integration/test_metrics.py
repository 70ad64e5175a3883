"""GET /metrics: who may scrape, and what is so when somebody does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest
from django.utils import timezone

from asyncpoll.contract import Status
from tasks_app.hold.admission import admission
from tasks_app.observers import measuring as module
from tasks_app.observers.measuring import Measuring
from tasks_app.store import Lane, Share, claim, depths, hasten, step
from tests.integration.api_support import API, is_problem, mapped, stored
from tests.integration.clients import connected
from tests.scraping import Scrape
from tests.support import aeventually
from tests.workers import fetch

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test measured is not the next one's."""
    monkeypatch.setattr("tasks_app.api.metrics.measuring", Measuring())


async def scraped(client: httpx.AsyncClient) -> Scrape:
    response = await client.get("/metrics")
    assert response.status_code == 200, response.text
    return Scrape(response.text)


async def test_a_program_on_this_machine_scrapes_without_a_token(client, settings):
    """Also where anonymous use is off, as in production."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False}
    response = await client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert Scrape(response.text).value("link_up") == 1
    assert (await client.head("/metrics")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [{"X-Forwarded-For": "10.0.0.1"}, {"Via": "1.1 gateway"}, {"Host": "example.org"}],
)
async def test_through_a_proxy_it_takes_a_token(client, settings, headers):
    """Whoever can reach the gateway could otherwise read it."""
    mapped(settings)
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "ANONYMOUS": False}
    settings.ALLOWED_HOSTS = ["*"]
    is_problem(await client.get("/metrics", headers=headers), 401, "unauthenticated")
    bearer = {**headers, "Authorization": "Test ops metrics"}
    assert (await client.get("/metrics", headers=bearer)).status_code == 200


async def test_credentials_without_the_scope_are_refused(client, settings):
    """Also from this machine: what was sent is what counts."""
    mapped(settings)
    refused = await client.get("/metrics", headers={"Authorization": "Test ops read"})
    assert "'metrics'" in is_problem(refused, 403, "forbidden")


async def test_requests_held_are_counted_by_route(service, client):
    """And no longer when they are answered."""
    task_id = await stored(service)
    task = f"{API}/tasks/{task_id}"
    holding = [
        client.get(f"{task}/long_poll?client_known_version=1"),
        client.get(f"{task}/long_poll?client_known_version=1"),
        client.get(f"{task}/status?wait=true"),
        client.get(f"{task}/events?after=1"),
        client.get(task, headers={"Prefer": "wait=20", "If-None-Match": 'W/"v1"'}),
        client.get(f"{API}/tasks/long_poll?task={task_id}:1"),
        client.post(
            f"{API}/queues/nobody/claim",
            json={"claim_id": str(uuid4()), "max_hold_seconds": 20},
        ),
        client.post(
            f"{API}/tasks",
            json={"task": "sample.add", "kwargs": {"a": 1}},
            headers={"Prefer": "wait=20"},
        ),
    ]
    waits = [asyncio.ensure_future(wait) for wait in holding]
    await aeventually(lambda: admission.held == len(waits))
    scrape = await scraped(client)
    by_route = {
        sample.labels["route"]: sample.value
        for sample in scrape.samples
        if sample.name == "asyncpoll_held" and sample.value
    }
    assert by_route == {
        "long_poll": 2,
        "status": 1,
        "events": 1,
        "task": 1,
        "long_poll_many": 1,
        "claim": 1,
        "submit": 1,
    }
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    await aeventually(lambda: admission.held == 0)
    assert (await scraped(client)).value("held") == 0


async def test_wake_latency_is_from_the_commit_by_the_databases_clock(service, client, monkeypatch):
    """However far the clocks are apart; who finds the end at once was not woken."""
    real = module.time.time
    monkeypatch.setattr("time.time", lambda: real() - 3600)
    task_id = await stored(service)
    before = await scraped(client)
    held = asyncio.ensure_future(client.get(f"{API}/tasks/{task_id}/status?wait=true"))
    await aeventually(lambda: service.hub.waiting == 1)
    await service.pool.run(step(task_id, Status.SUCCESS, result="1"))
    assert (await held).json()["outcome"] == "TERMINAL"
    await client.get(f"{API}/tasks/{task_id}/status?wait=true")
    after = await scraped(client)
    count, total = (
        after.value(f"wake_latency_seconds_{part}") - before.value(f"wake_latency_seconds_{part}")
        for part in ("count", "sum")
    )
    assert count == 1
    assert 0 < total < held.result().json()["hold_duration_ms"] / 1000


async def test_depth_and_age_are_by_queue(service, client):
    """Of ready tasks only; the oldest of those next in line counts, whoever owns it."""
    now = timezone.now()
    for owner, minutes in [("", 1), ("", 9), ("alice", 3), ("bob", 5)]:
        task = await stored(service, queue="red", owner=owner)
        await fetch(
            "UPDATE tasks_app_task SET run_at = run_at - %s, order_key = order_key - %s, created_at = created_at - %s "
            "WHERE id = %s",
            *[timedelta(minutes=minutes)] * 3,
            task,
        )
    await stored(service, queue="blue")
    await stored(service, queue="later", run_at=now + timedelta(hours=1))
    scrape = await scraped(client)
    assert scrape.value("database_up") == 1
    assert (scrape.value("queue_depth", queue="red"), scrape.value("queue_depth")) == (4, 5)
    assert 540 <= scrape.value("queue_age_seconds", queue="red") < 600
    assert scrape.value("queue_age_seconds", queue="blue") < 60


async def test_a_claimed_task_is_not_in_the_queue(service):
    """What runs does not wait."""
    await stored(service, queue="red")
    await service.pool.run(claim(uuid4(), [Share(Lane("red", ""), 1)], 10))
    assert await service.pool.run(depths()) == []


async def test_only_so_many_are_counted(service):
    """A look at millions costs what a look at some costs."""
    for queue in "abcd":
        for owner in ("", "x", "y"):
            for _ in range(2):
                await stored(service, queue=queue, owner=owner)
    bounds = {"most": 100, "most_each": 3, "most_queues": 2, "most_owners": 2}
    found = await service.pool.run(replace(depths(), params=bounds))
    assert [(each.queue, each.ready) for each in found] == [("a", 3), ("b", 3)]
    shared = replace(depths(), params={**bounds, "most": 9, "most_each": 100, "most_queues": 9})
    assert [each.ready for each in await service.pool.run(shared)] == [2, 2, 2, 2]


@pytest.mark.parametrize("hastened", [True, False])
async def test_a_burst_is_not_gathered_to_count_some_of_it(service, hastened):
    """Not hastened it would be, by a planner that takes a queue for short which has just become long."""
    call = depths()
    async with service.pool.transaction() as transaction:
        execute = transaction._connection.execute
        await execute("SET LOCAL enable_seqscan = on")
        await execute("SET LOCAL seq_page_cost = 0")
        await execute("SET LOCAL random_page_cost = 1000000")
        if hastened:
            await transaction.run(hasten(1_000))
        cursor = await execute(f"EXPLAIN {call.sql}".encode(), call.params)
        plan = "\n".join(row[0] for row in await cursor.fetchall())
    gathers = [word for word in ("Bitmap", "Seq Scan", "Sort") if word in plan]
    assert bool(gathers) is not hastened


async def test_the_database_is_asked_once_in_some_seconds(client, statements):
    """However many scrape."""
    await asyncio.gather(*(scraped(client) for _ in range(5)))
    await scraped(client)
    assert statements.count("depths") == 1


async def test_the_rest_is_told_while_the_database_is_away(service, client, monkeypatch):
    """Who looks at an outage wants to see it."""

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(module, "_measure", never)
    scrape = await scraped(client)
    assert scrape.value("database_up") == 0
    assert not scrape.has("queue_depth")
    assert scrape.value("link_up") == 1
    assert scrape.value("pool_limit") == 4


async def test_the_pool_and_the_event_loop_are_told_as_they_are(service, client, monkeypatch):
    """At the moment of the scrape."""
    monkeypatch.setattr(admission, "lag_seconds", 0.25)
    async with service.pool.transaction():
        busy = await scraped(client)
    free = await scraped(client)
    used = [scrape.value("pool_connections", state="used") for scrape in (busy, free)]
    assert used == [1, 0]
    assert busy.value("pool_requests_total") >= 1
    assert busy.value("event_loop_lag_seconds") == 0.25
    assert busy.value("event_loop_tasks") > 1
    assert busy.value("processes", state="answering") == busy.value("processes") == 1


async def test_every_sample_says_of_which_process_it_is(client):
    """With several behind one address, any of them may have answered."""
    response = await client.get("/metrics")
    samples = Scrape(response.text).samples
    assert len({sample.labels["process"] for sample in samples}) == 1
    assert not any(sample.name.endswith("_created") for sample in samples)


async def test_it_is_counted_under_a_server_without_lifespan_events(service, monkeypatch):
    """From the first scrape on."""
    async with connected() as client:
        task_id = await stored(service)
        before = await scraped(client)
        await client.get(f"{API}/tasks/{task_id}/long_poll")
        after = await scraped(client)
    name = {"route": "long_poll", "outcome": "CHANGED"}
    assert (
        after.value("holds_answered_total", **name)
        == before.value("holds_answered_total", **name) + 1
    )
