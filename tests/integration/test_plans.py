"""Plans from what the registry measured: the command, the route, and how often clients are told to ask."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command

from asyncpoll import planfile
from asyncpoll.contract import Status
from tasks_app.api.identity import poll_ticket
from tasks_app.models import Task
from tasks_app.plans import registry
from tasks_app.plans.book import PlanBook, book
from tasks_app.store import step
from tests.integration.api_support import API, is_problem, mapped, stored
from tests.integration.measured import finished, hours_ago, roll
from tests.support import aeventually
from tests.workers import fetch

pytestmark = pytest.mark.django_db(transaction=True)
# 100 durations whose percentiles are 10, 18 and 24 s.
SPREAD = [10_000.0] * 50 + [18_000.0] * 45 + [24_000.0] * 5
NAME = "sample.add"
measured = sync_to_async(finished)


async def planned(client: httpx.AsyncClient, **parameters: Any) -> Any:
    """The body of an answer about a plan."""
    response = await client.get(f"{API}/plan", params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


def command(*arguments: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What `manage.py pollplan` prints."""
    call_command("pollplan", *arguments)
    return capsys.readouterr().out


def test_the_registry_s_own_measurements_become_a_table(capsys) -> None:
    """With what the tasks had waited before."""
    finished("now() - interval '1 minute'", SPREAD)
    finished("now() - interval '1 minute'", [10.0] * 3, name="sample.rare")
    finished("now() - interval '1 minute'", [10.0] * 900, status="FAILED")
    out = " ".join(command(capsys=capsys).split())
    assert "sample.add 100 10 s 18 s 24 s 40 s every 2 s 25 s 36 s" in out
    assert "sample.rare 3 – – – – – – –" in out
    assert "sample.rare: P50 needs 10 samples, P95 20, P99 100 and there are 3: the interval" in out
    assert "UTC; too few to say how long they had waited in the queue." in out
    assert "sample.add: measured one by one since " in out
    assert "had waited in its queue: P50 1 s, P95 1.8 s, P99 2.4 s." in out


def test_a_registry_that_measured_nothing_says_what_to_do(capsys) -> None:
    """Run tasks, or bring measurements."""
    finished("now() - interval '1 minute'", SPREAD)
    out = command("--queue", "mail", capsys=capsys)
    assert "No task that ended in that time was measured; run some, or name a FILE." in out


def test_a_decision_is_made_for_each_type_and_files_are_read_here_too(capsys, tmp_path) -> None:
    """The same options as `asyncpoll plan`."""
    finished("now() - interval '1 minute'", SPREAD)
    out = command("--async-share", "20", "--task", NAME, capsys=capsys)
    assert "sample.add: add ?wait=true (20 % asynchronous, P95 18 s; nearest rule" in out
    (tmp_path / "a.csv").write_text("task,duration_ms\n" + "x,5\n" * 100)
    assert "x         100  5 ms" in command(str(tmp_path / "a.csv"), capsys=capsys)
    with pytest.raises(CommandError, match="give all five"):
        call_command("pollplan", "--people", "3")


def test_a_polling_file_is_written_from_the_registry(capsys, tmp_path) -> None:
    """For the SDK and for tests; only of one queue, if so asked for."""
    finished("now() - interval '1 minute'", SPREAD)
    finished("now() - interval '1 minute'", [1.0] * 100, queue="mail")
    path = str(tmp_path / "plan.json")
    call_command("pollplan", "--format", "polling-file", "--output", path, "--queue", "default")
    plan = planfile.read(path).for_task(NAME)
    assert plan is not None
    assert (plan.samples, plan.timeout_seconds) == (100, 40.0)


async def test_the_route_gives_the_numbers_of_the_command(client, service, capsys) -> None:
    """Of one type."""
    await measured("now() - interval '1 minute'", SPREAD)
    body = await planned(client, task=NAME)
    out = await sync_to_async(command)("--format", "json", capsys=capsys)
    [plan] = json.loads(out)["plans"]
    assert {name: body[name] for name in plan} == plan
    assert body["p95_ms"] == 18_000.0
    assert body["queue_wait_p95_ms"] == pytest.approx(1_800.0)
    assert body["relative_error"] == 0


async def test_more_tasks_than_are_looked_at_one_by_one_are_measured_by_rollups(
    client, service, monkeypatch
) -> None:
    """Within the error that is said, and without the hour that goes on."""
    await measured(hours_ago(2), SPREAD)
    await measured("now()", [1.0] * 5)
    assert (await planned(client, task=NAME))["samples"] == 105
    await sync_to_async(roll)()
    monkeypatch.setattr(registry, "MOST_ROWS", 50)
    body = await planned(client, task=NAME)
    assert (body["samples"], body["relative_error"]) == (100, 0.01)
    assert body["p95_ms"] == pytest.approx(18_000, rel=0.01)
    assert body["notes"] == ["Percentiles are within 1% of what was measured."]
    await sync_to_async(Task.objects.all().delete)()
    assert (await planned(client, task=NAME))["samples"] == 100


async def test_a_type_that_was_not_measured_has_a_plan_that_says_so(client, service) -> None:
    """Also one that does not exist: which do is not told here."""
    body = await planned(client, task="no.such")
    assert (body["samples"], body["p50_ms"], body["timeout_seconds"]) == (0, None, None)
    assert body["measured_since"] is None
    assert len(body["notes"]) == 1


async def test_a_type_that_is_not_exposed_is_known_to_those_who_have_tasks_of_it(
    client, service, settings
) -> None:
    """Others can't tell it from one that does not exist."""
    await measured("now() - interval '1 minute'", SPREAD, name="sample.secret")
    assert (await planned(client, task="sample.secret"))["samples"] == 100
    mapped(settings)
    await stored(service, name="sample.secret", owner="alice")

    async def samples(owner: str, task: str) -> dict[str, Any]:
        headers = {"Authorization": f"Test {owner} read"}
        return (await client.get(f"{API}/plan?task={task}", headers=headers)).json()

    assert (await samples("alice", "sample.secret"))["samples"] == 100
    hidden, missing = await samples("bob", "sample.secret"), await samples("bob", "no.such")
    assert hidden == {**missing, "task": "sample.secret"}


async def test_a_plan_is_for_those_who_may_read(client, service, settings, task_id) -> None:
    """And is asked for by a name."""
    is_problem(await client.get(f"{API}/plan"), 400, "invalid-parameter", "task")
    is_problem(await client.get(f"{API}/plan?task="), 400, "invalid-parameter", "task")
    is_problem(await client.get(f"{API}/plan?task=a&task=b"), 400, "invalid-parameter", "task")
    is_problem(await client.post(f"{API}/plan?task=a"), 405, "method-not-allowed")
    ticket = poll_ticket(task_id)
    response = await client.get(f"{API}/plan?task=a&ticket={ticket}")
    is_problem(response, 403, "forbidden", "ticket")
    mapped(settings)
    headers = {"Authorization": "Test alice submit"}
    is_problem(await client.get(f"{API}/plan?task=a", headers=headers), 403, "forbidden")


async def polled(client: httpx.AsyncClient, task_id: Any, path: str) -> tuple[str, int]:
    """The outcome of a poll and the backoff that it recommends."""
    body = (await client.get(f"{API}/tasks/{path.format(task_id)}")).json()
    return body["outcome"], body["recommended_client_backoff_ms"]


async def test_short_polls_are_told_to_come_back_as_the_plan_says(client, service) -> None:
    """A fifth of the median while that has not passed, then the growing intervals; what is held is not sent away."""
    await measured("now() - interval '1 minute'", SPREAD)
    await book.plan(NAME)
    task_id = await stored(service)
    for path in (
        "{}/long_poll?client_known_version=1&max_hold_seconds=0",
        "{}/status?wait=false",
        "long_poll?task={}:1&max_hold_seconds=0",
    ):
        outcome, backoff = await polled(client, task_id, path)
        assert (outcome, 2_000 <= backoff <= 3_000) == ("STILL_RUNNING", True), path
    held = await polled(
        client, task_id, "{}/long_poll?client_known_version=1&max_hold_seconds=0.01"
    )
    assert held[0] == "STILL_RUNNING"
    assert held[1] <= 150
    assert await polled(client, task_id, "{}/long_poll?max_hold_seconds=0") == ("CHANGED", 0)


async def test_short_polls_of_a_task_that_takes_long_come_at_the_cap(client, service) -> None:
    """By when it started."""
    await measured("now() - interval '1 minute'", SPREAD)
    await book.plan(NAME)
    task_id = await stored(service)
    await service.pool.run(step(task_id, Status.RUNNING))
    await fetch(
        "UPDATE tasks_app_task SET started_at = started_at - interval '1 minute' WHERE id = %s",
        task_id,
    )
    path = "{}/long_poll?client_known_version=2&max_hold_seconds=0"
    outcome, backoff = await polled(client, task_id, path)
    assert (outcome, 5_000 <= backoff <= 7_500) == ("STILL_RUNNING", True)


async def test_short_polls_never_wait_for_a_plan(client, service, statements) -> None:
    """It is read in the background, once for all of a minute, and the next poll is told what it says."""
    await measured("now() - interval '1 minute'", SPREAD)
    fresh = PlanBook()
    assert [fresh.known(NAME) for _ in range(5)] == [None] * 5
    statements.clear()
    await aeventually(lambda: fresh.known(NAME))
    assert [fresh.known(NAME).p50_ms for _ in range(5)] == [10_000.0] * 5  # type: ignore[union-attr]
    assert not fresh._turning
    assert statements == ["newest_durations", "sum_rollups", "sum_rollups"]


async def test_polls_that_are_held_ask_for_no_plan(client, service) -> None:
    """Their backoff does not follow it."""
    task_id = await stored(service, name="sample.never_planned")
    path = "{}/long_poll?client_known_version=1&max_hold_seconds=0.01"
    assert (await polled(client, task_id, path))[0] == "STILL_RUNNING"
    assert "sample.never_planned" not in book._turning


async def test_who_asks_while_a_plan_is_read_is_told_the_same(service, statements) -> None:
    """A crowd costs what one costs."""
    statements.clear()
    fresh = PlanBook()
    await asyncio.gather(*(fresh.plan("sample.crowd") for _ in range(20)))
    assert statements.count("newest_durations") == 1
