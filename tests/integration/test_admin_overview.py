"""The overview: what it shows, who may see it, and the poll that it keeps up by."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from tasks_app.admin import standing
from tasks_app.hold.admission import admission
from tasks_app.insights.durations import Durations
from tasks_app.models import Task, WebProcess, WorkerProcess
from tasks_app.observers import metrics
from tasks_app.plans.registry import Measurement
from tasks_app.plans.remarks import remarks
from tasks_app.serving.reports import Report
from tasks_app.store import cancel, delete
from tasks_app.store.driver import run
from tasks_app.store.overviews import MOST_LOOKED_AT
from tests.integration.admin_support import failed, pending, running, succeeded
from tests.integration.api_support import stored
from tests.integration.test_admin_actions import staff
from tests.support import aeventually

PAGE = "admin:tasks_app_overview_changelist"
CHANGES = "admin:asyncpoll_overview:changes"


@pytest.fixture(autouse=True)
def measured_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test measured is not the next one's."""
    monkeypatch.setattr(standing, "kept", standing.Kept())


def figures(client: Client) -> dict[tuple[str, str], tuple[int, ...]]:
    """Waiting, due later, running and failed, by queue and type."""
    queues = client.get(reverse(PAGE)).context["queues"]
    return {
        (type.queue, type.name): (type.due, type.later, type.running, type.failed)
        for queue in queues
        for type in queue.types
    }


@pytest.mark.django_db
def test_it_says_what_waits_runs_and_fails(admin_client: Client) -> None:
    """By queue and type."""
    running(queue="mail", name="b")
    failed(queue="slow")
    succeeded()
    pending()
    pending(queue="mail", name="b")
    pending(queue="mail", name="b", run_at=timezone.now() + timedelta(hours=1))
    assert figures(admin_client) == {
        ("default", "sample.add"): (1, 0, 0, 0),
        ("mail", "b"): (1, 1, 1, 0),
        ("slow", "sample.add"): (0, 0, 0, 1),
    }


@pytest.mark.django_db
def test_a_failure_of_long_ago_is_no_failure_of_now(admin_client: Client) -> None:
    """An hour is what it looks back."""
    task_id = failed()
    Task.objects.filter(pk=task_id).update(finished_at=timezone.now() - timedelta(hours=2))
    assert figures(admin_client) == {}


@pytest.mark.django_db
def test_it_says_how_tasks_ended_by_the_minute(admin_client: Client) -> None:
    """How many, and percentiles of how long they ran and had waited."""
    for _ in range(3):
        succeeded()
    failed()
    spans = admin_client.get(reverse(PAGE)).context["spans"]
    assert sum(span.succeeded for span in spans) == 3
    assert sum(span.failed for span in spans) == 1
    assert all(0 <= each < 60 for each in (*spans[-1].ran, *spans[-1].waited))


@pytest.mark.django_db
def test_what_never_began_has_not_waited_for_no_time(admin_client: Client) -> None:
    """It is counted, and not among the durations."""
    run(cancel(pending()))
    [span] = admin_client.get(reverse(PAGE)).context["spans"]
    assert span.cancelled == 1
    assert {*span.ran, *span.waited} <= {None}


@pytest.mark.django_db
def test_it_says_who_works_and_who_serves(admin_client: Client) -> None:
    """With the age of each heartbeat; held requests, wake latency and link state of each web process."""
    running()
    now = timezone.now()
    facts = {
        "hostname": "web",
        "pid": 1,
        "started_at": now,
        "bridge": "leader",
        "lag_seconds": 0.012,
    }
    facts |= {"held": 3, "most_held": 10_000, "woken": 40, "wake_p50": 0.0015, "wake_p95": 0.004}
    for pid, state in enumerate(({}, {"linked": False}, {"layered": False}, {"draining": True})):
        usual = {"linked": True, "layered": True, "draining": False, "heartbeat_at": now}
        WebProcess.objects.create(**{**facts, **usual, **state, "id": uuid4(), "pid": pid})
    late = now - timedelta(minutes=3)
    WebProcess.objects.filter(pid=0).update(heartbeat_at=late)
    WorkerProcess.objects.update(heartbeat_at=late)
    html = admin_client.get(reverse(PAGE)).content.decode()
    for shown in ("3 of 10,000", "40 a minute", "P50 ≤ 2 ms, P95 ≤ 4 ms", "leader", "12 ms late"):
        assert html.count(shown) == 4, shown
    for badge in (">down<", ">layer down<", ">draining<"):
        assert html.count(badge) == 1, badge
    assert html.count(">silent<") == 2 and html.count("3 min ") == 2 and "host-1:4711" in html
    assert "heard of last" not in html
    [worker] = WorkerProcess.objects.values()
    WorkerProcess.objects.bulk_create(
        WorkerProcess(**{**worker, "id": uuid4(), "pid": pid}) for pid in range(1_000)
    )
    html = admin_client.get(reverse(PAGE)).content.decode()
    assert html.count("The 50 that were heard of last.") == 1 and len(html) < 100_000


@pytest.mark.django_db
def test_it_says_how_tasks_ended_by_the_hour(admin_client: Client) -> None:
    """From rollups, within a hundredth; no percentile where there were too few tasks."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO tasks_app_rollup SELECT 'a', date_trunc('hour', now()) - interval '2 h', 3600, q, 'SUCCESS', 50, "
            "'{100,200}', '{25,25}', '{50}', '{5}' FROM unnest('{x,y}'::text[]) AS q"
        )
    [span] = admin_client.get(reverse(PAGE), {"range": "day"}).context["spans"]
    assert (span.succeeded, span.failed) == (100, 0)
    low, high = standing.Sketch([(100, 1)]).ranked(0), standing.Sketch([(200, 1)]).ranked(0)
    assert span.ran == [low / 1000, high / 1000, high / 1000]
    assert span.waited[0] is not None and span.waited[1:] == [None, None]


@pytest.mark.django_db
def test_many_that_look_are_answered_by_one_measurement(admin_client: Client) -> None:
    """At most one a second."""
    admin_client.get(reverse(PAGE))
    with CaptureQueriesContext(connection) as captured:
        admin_client.get(reverse(PAGE))
    assert not [each["sql"] for each in captured if "tasks_app_task" in each["sql"]]


@pytest.mark.django_db
def test_a_database_that_is_slow_leaves_the_page_standing(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers and web processes are shown, and the page goes on asking."""
    monkeypatch.setattr(standing, "_MOST_MILLISECONDS", 1)
    monkeypatch.setattr(standing, "queues", lambda: standing.hastened(slow()))
    html = admin_client.get(reverse(PAGE)).content.decode()
    assert "did not say in time" in html and "asyncpoll-live" in html


def slow() -> standing.Call[None]:
    """A statement that takes its time."""

    class Sleep(standing.Call):  # type: ignore[type-arg]
        sql = "SELECT pg_sleep(1)"

    return Sleep("", {}, lambda rows: None)


@pytest.mark.django_db
def test_who_may_view_tasks_may_see_it() -> None:
    """And nobody else; it is listed for them."""
    assert staff("view_workerprocess").get(reverse(PAGE)).status_code == 403
    viewer = staff("view_task")
    assert viewer.get(reverse(PAGE)).status_code == 200
    assert reverse(PAGE) in viewer.get(reverse("admin:index")).content.decode()
    assert Client().get(reverse(PAGE)).status_code == 302


def signed_in(is_superuser: bool = True) -> dict[str, str]:
    """The cookie of somebody's session."""
    user = User.objects.create_user("ann", is_staff=True, is_superuser=is_superuser)
    client = Client()
    client.force_login(user)
    return {"Cookie": f"sessionid={client.cookies['sessionid'].value}"}


PLAN = "admin:tasks_app_overview_plan"


@pytest.mark.django_db
def test_the_plan_page_answers_by_the_inputs_of_who_asks(admin_client: Client) -> None:
    """Percentiles and parameters by type, the rule that fired, the arithmetic line by line."""
    for _ in range(3):
        succeeded()
    assert reverse(PLAN) in admin_client.get(reverse(PAGE)).content.decode()
    html = admin_client.get(reverse(PLAN)).content.decode()
    assert "sample.add" in html and "Whether it pays" not in html
    inputs = {"saved_minutes": 8, "runs_per_day": 6, "people": 2, "working_days": 22}
    inputs |= {"days": 1, "async_share": 20, "p95": 25, "hours_per_day": 8, "cost_days": 3}
    html = admin_client.get(reverse(PLAN), inputs).content.decode()
    assert "add ?wait=true" in html and "= 2112 person-minutes" in html.replace(",", "")
    assert "not worth it" in html
    html = admin_client.get(reverse(PLAN), {**inputs, "people": ""}).content.decode()
    assert "“People”" in html and "--people" not in html
    largest = dict.fromkeys(("saved_minutes", "runs_per_day", "people", "working_days"), "1e12")
    asked = {**inputs, **largest, "p95": "", "async_share": 40}
    html = admin_client.get(reverse(PLAN), asked).content.decode()
    assert "event-driven" in html and "× the cost" in html
    html = admin_client.get(reverse(PLAN), {**inputs, "days": 0, "people": -1}).content.decode()
    assert html.count("Ensure this value") == 2 and ">sample.add<" in html
    # What it would be divided by.
    html = admin_client.get(reverse(PLAN), {**inputs, "cost_days": "1e-300"}).content.decode()
    assert "no more than 12 decimal places" in html
    assert "add ?wait=true" in html and "Whether it pays<" not in html
    assert staff("view_workerprocess").get(reverse(PLAN)).status_code == 403


@pytest.fixture
def counted() -> Iterator[None]:
    """With the observers that count waits."""
    uninstall = metrics.install()
    yield
    uninstall()


@pytest.mark.django_db(transaction=True)
class TestThePoll:
    """Held by the machinery of the API, for those that the admin lets in."""

    async def test_it_is_held_without_a_thread_until_a_task_changes(self, service, client) -> None:
        """The answer says what to come back with."""
        task_id = await stored(service)
        cookie = await asyncio.to_thread(signed_in)
        first = (await client.get(reverse(CHANGES), headers=cookie)).json()
        assert first["outcome"] == "CHANGED"
        poll = asyncio.create_task(
            client.get(reverse(CHANGES), params={"after": first["after"]}, headers=cookie)
        )
        await aeventually(lambda: admission.held_by["overview"] == 1)
        await service.pool.run(cancel(task_id))
        answer = await poll
        assert answer.json()["outcome"] == "CHANGED"
        assert answer.headers["cache-control"] == "no-store"
        assert admission.held == 0

    async def test_nobody_else_is_let_in(self, service, client) -> None:
        """No session, a session without the permission, a token: none of them may hold."""
        cookie = await asyncio.to_thread(signed_in, is_superuser=False)
        of_a_task = reverse("admin:asyncpoll_task:changes", args=[await stored(service)])
        for headers in ({}, cookie, {"Cookie": "sessionid=x"}, {"Authorization": "Bearer x"}):
            assert (await client.get(reverse(CHANGES), headers=headers)).status_code == 403
            assert (await client.get(of_a_task, headers=headers)).status_code == 403
        assert (await client.post(reverse(CHANGES))).status_code == 405

    async def test_a_task_that_is_gone_and_versions_that_are_none_are_answered(
        self, service, client
    ) -> None:
        """At once: the one by saying so, the others as a page that has seen nothing yet."""
        cookie = await asyncio.to_thread(signed_in)
        task_id = await stored(service)
        address = reverse("admin:asyncpoll_task:changes", args=[task_id])
        for after in ("", "x", "-1", "9" * 5_000, "٣"):
            answer = await client.get(address, params={"after": after}, headers=cookie)
            assert answer.json() == {"outcome": "CHANGED", "after": "1"}
        poll = asyncio.create_task(client.get(address, params={"after": "1"}, headers=cookie))
        await aeventually(lambda: admission.held_by["admin"] == 1)
        await service.pool.run(delete([task_id]))
        assert (await poll).json() == {"outcome": "GONE"}
        again = await client.get(address, params={"after": "1"}, headers=cookie)
        assert again.json() == {"outcome": "GONE"}

    async def test_a_web_process_says_how_it_is_and_takes_its_word_back(self, service) -> None:
        """A row while it runs."""
        report = Report(service)
        report.start()
        await aeventually(WebProcess.objects.filter(pk=report.id).aexists)
        row = await WebProcess.objects.aget()
        assert (row.bridge, row.held, row.most_held) == ("own", 0, admission.most_held)
        await report.stop()
        assert not await WebProcess.objects.aexists()

    async def test_what_a_web_process_says_is_what_happens_in_it(
        self, service, client, monkeypatch, counted
    ) -> None:
        """Held requests, wakes with their latency, link and layer, whether it drains."""
        report = Report(service)
        await aeventually(lambda: report.facts().linked and report.facts().layered)
        await report.step()
        task_id = await stored(service)
        poll = asyncio.create_task(
            client.get(f"/api/v1/tasks/{task_id}/long_poll?client_known_version=1")
        )
        await aeventually(lambda: admission.held == 1)
        await report.step()
        row = await WebProcess.objects.aget()
        assert (row.held, row.woken, row.wake_p50, row.draining) == (1, 0, None, False)
        await service.pool.run(cancel(task_id))
        assert (await poll).status_code == 200
        monkeypatch.setattr(admission, "draining", True)
        await report.step()
        row = await WebProcess.objects.aget()
        assert (row.held, row.woken, row.draining) == (0, 1, True)
        assert row.wake_p50 is not None and 0 < row.wake_p50 <= row.wake_p95
        assert (row.linked, row.layered) == (True, True)
        await report.stop()

    async def test_a_web_process_tells_its_link_and_its_layer_apart(
        self, service, monkeypatch
    ) -> None:
        """Each is said as soon as it changes, whatever the other is."""
        report = Report(service)

        async def said() -> tuple[bool, bool]:
            await report.step()
            row = await WebProcess.objects.aget()
            return row.linked, row.layered

        await aeventually(lambda: service.state.trusted and service.state.layer)
        assert await said() == (True, True)
        monkeypatch.setattr(service.hub.trust, "active", False)
        assert await said() == (False, True)
        await service.link.stop()
        monkeypatch.setattr(service.hub.trust, "active", True)
        assert await said() == (True, False)
        await report.stop()


@pytest.mark.django_db
def test_what_a_plan_lacks_is_named_as_its_fields_are_and_the_rest_is_answered(
    admin_client: Client,
) -> None:
    """No option of the command line; the table and the decision stay, also with a P95 that nothing asks for."""
    answer = admin_client.get(
        reverse("admin:tasks_app_overview_plan"),
        {"days": 30, "hours_per_day": 8, "saved_minutes": 5, "async_share": 40, "p95": 12},
    )
    html = answer.content.decode()
    missing = "“Runs a day”, “People”, “Working days”, “Person-days that it costs”"
    assert f"computed without {missing}." in html and "--" not in html.split("errornote")[1][:300]
    assert "By task type" in html and "Whether to poll" in html and "Whether it pays<" not in html
    lone = admin_client.get(
        reverse("admin:tasks_app_overview_plan"), {"days": 30, "hours_per_day": 8, "p95": 12}
    ).content.decode()
    assert "made without “Share of asynchronous cases, in %”." in lone and "By task type" in lone


@pytest.mark.django_db
def test_numbers_are_written_for_readers(admin_client: Client) -> None:
    """Thousands are set apart, short waits are milliseconds, and a heading is not repeated in its cells."""
    html = admin_client.get(reverse(PAGE)).content.decode()
    assert f"looks at up to {MOST_LOOKED_AT:,} tasks" in html
    assert f"of at most {2 * MOST_LOOKED_AT:,} tasks" in html
    html = admin_client.get(reverse(PLAN)).content.decode()
    assert ">First 5 polls<" in html and "all five or none" in html
    assert "No task has ended in that time." in html and "FILE" not in html
    first = datetime(2026, 1, 2, tzinfo=UTC)
    each = Measurement(Durations((1.0,)), Durations((17.1,) * 1_000), first, False)
    [said] = remarks({"sample.add": each})
    assert "P50 17.1 ms" in said
