"""What happens changes the number that the documentation names, in whichever process it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

import pytest

from asyncpoll.contract import Outcome, Status
from tasks_app.errors import StoreUnavailable
from tasks_app.hold.admission import admission
from tasks_app.management.watching import worker_states
from tasks_app.observers import metrics
from tasks_app.observers.exposition import exposition
from tasks_app.store import Lane, Share, claim, step
from tasks_app.store.pool import loop_pool
from tasks_app.upkeep import Rescue
from tests import sample_tasks
from tests.external_tasks import anything
from tests.integration.api_support import API, stored
from tests.integration.executors_support import executing
from tests.integration.test_worker_faults import take_away
from tests.scraping import Scrape, growth
from tests.support import aeventually
from tests.workers import ended, fetch, run_one, working

pytestmark = pytest.mark.django_db(transaction=True)
Grown = Callable[..., float]


@pytest.fixture
def grown() -> Iterator[Grown]:
    """How much a sample has grown since the test began."""
    end = metrics.install()
    yield growth(lambda: Scrape(exposition([]).decode()))
    end()


async def test_a_worker_counts_what_it_runs(grown: Grown) -> None:
    """Claims, commits, their sizes and times, attempts by their end, and retries."""
    async with working() as worker:
        await run_one(sample_tasks.add, 1)
        await run_one(sample_tasks.picky, "ConnectionError")
        await run_one(sample_tasks.picky, "ValueError")
        states = Scrape(exposition(worker_states(worker)).decode())
    ended_as = {"task": "sample.picky"}
    assert grown("tasks_claimed_total") == grown("batch_size_sum", verb="claim") == 4
    assert grown("changes_committed_total") == grown("batch_size_sum", verb="commit") >= 4
    assert grown("commit_seconds_count") == grown("batch_size_count", verb="commit")
    assert 0 < grown("commit_seconds_sum") < 30
    assert grown("attempts_finished_total", task="sample.add", status="SUCCESS") == 1
    statuses = ("PENDING", "SUCCESS", "FAILED")
    assert [grown("attempts_finished_total", **ended_as, status=each) for each in statuses] == [
        1
    ] * 3
    assert grown("tasks_retried_total") == grown("tasks_retried_total", task="sample.picky") == 1
    assert grown("attempt_seconds_count") == grown("queue_wait_seconds_count") == 4
    assert states.value("worker_concurrency") == 20
    assert states.value("pool_connections") >= 1 and states.value("pool_requests_total") >= 4
    assert states.value("event_loop_tasks") >= 5


async def test_a_worker_counts_what_is_not_taken(
    grown: Grown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits by a database that is away, and outcomes by the fence."""
    async with working() as worker:
        real, failures = worker._pool.run, [StoreUnavailable("away")] * 2

        async def away(call):
            if failures and call.statement == "commit":
                raise failures.pop()
            return await real(call)

        late = await sample_tasks.wait_at.aenqueue("late")
        await aeventually(lambda: sample_tasks.seen["started late"])
        monkeypatch.setattr(worker._pool, "run", away)
        await take_away(late.id)
        sample_tasks.gates["late"].set()
        await aeventually(lambda: grown("tasks_fenced_total") == 1)
    assert grown("commits_retried_total") == 2


async def test_a_worker_counts_leases_that_it_lost(grown: Grown, settings) -> None:
    """By the heartbeat's answer."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "HEARTBEAT_SECONDS": 0.1}
    async with working():
        lost = await sample_tasks.sleep.aenqueue(60, "lost")
        await aeventually(lambda: sample_tasks.seen["started lost"])
        await take_away(lost.id)
        await aeventually(lambda: grown("leases_lost_total") == 1)


async def test_who_rescues_counts_it(grown: Grown, service) -> None:
    """From the first on: the series are there at 0."""
    there = {
        sample.labels["status"]
        for sample in Scrape(exposition([]).decode()).samples
        if sample.name == "asyncpoll_tasks_rescued_total"
    }
    assert there == {"PENDING", "FAILED", "CANCELLED"}
    for _ in range(2):
        await stored(service, queue="dead", max_attempts=2)
    await service.pool.run(claim(uuid4(), [Share(Lane("dead", ""), 2)], 10))
    await fetch("UPDATE tasks_app_task SET lease_expires_at = now() - interval '1 h'")
    await Rescue(await loop_pool()).step()
    assert grown("tasks_rescued_total") == grown("tasks_rescued_total", status="PENDING") == 2


async def test_an_executors_claims_and_reports_are_counted_where_it_sends_them(
    grown: Grown, service, settings
) -> None:
    """As a worker's are."""
    async with executing() as executor:
        await anything.aenqueue(1)
        await anything.aenqueue(2)
        done, late = (await executor.claim("both", limit=2))["tasks"]
        await executor.claim("none")
        await executor.stepped(done, progress=0.5)
        await executor.stepped(done, status="SUCCESS")
        await take_away(UUID(late["task_id"]))
        assert (await executor.step(late, status="SUCCESS")).status_code == 409
    assert grown("tasks_claimed_total") == grown("batch_size_sum", verb="claim") == 2
    assert grown("changes_committed_total") == grown("batch_size_sum", verb="commit") == 2
    assert grown("commit_seconds_count") == 2
    assert grown("tasks_fenced_total") == 1
    assert grown("attempts_finished_total", task="sample.anything", status="SUCCESS") == 1
    outcomes = [
        grown("holds_answered_total", route="claim", outcome=each) for each in ("CLAIMED", "EMPTY")
    ]
    assert outcomes == [1, 1]


async def test_every_outcome_is_counted_with_the_time_it_was_held(
    grown: Grown, service, client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By route."""
    task_id = await stored(service)
    url = f"{API}/tasks/{task_id}/long_poll"
    await client.get(url)
    await client.get(f"{url}?client_known_version=1&max_hold_seconds=0.1")
    with monkeypatch.context() as patched:
        patched.setattr(admission, "lag_seconds", 1e9)
        await client.get(f"{url}?client_known_version=1")
        patched.setattr(admission, "draining", True)
        await client.get(f"{url}?client_known_version=1")
    held = asyncio.ensure_future(client.get(f"{API}/tasks/{task_id}/status?wait=true"))
    await aeventually(lambda: service.hub.waiting == 1)
    await asyncio.sleep(0.05)  # of which the histogram has to know
    await service.pool.run(step(task_id, Status.SUCCESS, result="1"))
    await held
    seen = {
        each: grown("holds_answered_total", route="long_poll", outcome=each) for each in Outcome
    }
    assert seen == {**dict.fromkeys(Outcome, 1), Outcome.TERMINAL: 0}
    ended_as = {"route": "status", "outcome": "TERMINAL"}
    assert grown("hold_seconds_count", **ended_as) == 1
    assert 0.05 <= grown("hold_seconds_sum", **ended_as) < 30
    assert 0.09 <= grown("hold_seconds_sum", outcome="STILL_RUNNING") < 30
    assert grown("batch_size_count", verb="read") >= 1


async def test_a_task_that_does_not_yield_shows_as_lag() -> None:
    """Of the worker's event loop."""
    async with working() as worker:
        await run_one(sample_tasks.block_loop, 0.4)
        lag = await aeventually(
            lambda: Scrape(exposition(worker_states(worker)).decode()).value(
                "event_loop_lag_seconds"
            )
        )
    assert 0.01 < lag < 60


async def test_nobody_outside_makes_series(grown: Grown, client, service) -> None:
    """Not with owners, ids, paths, methods, task names, queues, tickets or claims of their choice."""
    await client.get("/metrics")
    for number in range(3):
        name = f"chosen-{number}"
        await client.get(f"{API}/tasks/{name}/long_poll?ticket={name}")
        await client.get(f"{API}/tasks/{uuid4()}/status?wait=true&timeout=0.01")
        await client.get(f"/{name}")
        await client.request(name.upper().replace("-", ""), f"{API}/tasks/{uuid4()}/events")
        await client.post(f"{API}/tasks", json={"task": name})
        await client.post(
            f"{API}/queues/{name}/claim", json={"claim_id": name, "max_hold_seconds": 0}
        )
        await stored(service, owner=name, queue="outside", name=f"sample.{name}")
    scrape = (await client.get("/metrics")).text
    assert "chosen" not in scrape
    routes = {each.labels["route"] for each in Scrape(scrape).samples if "route" in each.labels}
    assert routes <= {
        "long_poll",
        "status",
        "events",
        "claim",
        "submit",
        "task",
        "long_poll_many",
        "inbox",
        "probe",
        "overview",
        "admin",
    }


async def test_task_types_that_nobody_declares_are_a_hundred_at_most(
    grown: Grown, service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows may come from anywhere, and a worker fails each with its name."""
    monkeypatch.setattr("tasks_app.observers.labels.MOST_STRANGERS", 5)
    monkeypatch.setattr(metrics, "_tasks", metrics.TaskLabels())
    async with working():
        ids = [
            await stored(service, name=f"stranger-{number}", max_attempts=1) for number in range(9)
        ]
        for task_id in ids:
            await ended(task_id)
        await run_one(sample_tasks.add, 1)
    assert grown("attempts_finished_total", task="sample.add") == 1
    names = {
        sample.labels["task"]
        for sample in Scrape(exposition([]).decode()).samples
        if sample.labels.get("task", "").startswith(("stranger", "("))
    }
    assert len(names) == 6 and "(other)" in names
    assert grown("attempts_finished_total", task="(other)") == 4
