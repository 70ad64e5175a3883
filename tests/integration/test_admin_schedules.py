"""Schedules in the admin: what is shown, what can be done, and who may."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from tasks_app.models import Schedule, Task
from tasks_app.store import dsn
from tests.integration.admin_support import declared
from tests.integration.test_admin_actions import staff

pytestmark = pytest.mark.django_db

LIST = "admin:tasks_app_schedule_changelist"


def page(schedule: Schedule) -> str:
    return reverse("admin:tasks_app_schedule_change", args=[schedule.pk])


def act(client: Client, action: str, *schedules: Schedule) -> list[str]:
    """Run an action over schedules; what it says."""
    data = {"action": action, "_selected_action": [str(each.pk) for each in schedules]}
    response = client.post(reverse(LIST), data, follow=True)
    assert response.status_code == 200
    return [str(message) for message in response.context["messages"]]


def press(client: Client, button: str, schedule: Schedule) -> tuple[int, str]:
    """Press a button of the page; the status and where it leads."""
    response = client.post(reverse(f"admin:tasks_app_schedule_{button}", args=[schedule.pk]))
    return response.status_code, response.headers.get("Location", "")


def test_the_list_says_what_each_schedule_does(admin_client: Client) -> None:
    """And why one makes no tasks."""
    declared("runs")
    declared("waits", paused=True)
    declared("gone", active=False)
    declared("late", next_tick=datetime.now(UTC) - timedelta(minutes=5))
    text = admin_client.get(reverse(LIST)).content.decode()
    for words in ("runs", "active", "waits", "paused", "gone", "not declared", "late", "overdue"):
        assert words in text
    assert "30 2 * * *" in text and "Europe/Berlin" in text
    assert "Add schedule" not in text


def test_the_page_shows_the_next_ticks_and_what_is_enqueued(admin_client: Client) -> None:
    """Read only, escaped, with a link to the last task."""
    task_id = "019a0000-0000-7000-8000-000000000001"
    schedule = declared(
        last_task=task_id,
        last_tick=datetime(2026, 10, 23, 0, 30, tzinfo=UTC),
        next_tick=datetime(2026, 10, 24, 0, 30, tzinfo=UTC),
    )
    text = admin_client.get(page(schedule)).content.decode()
    for tick in ("10-23 00:30", "10-24 00:30", "10-25 00:30", "10-26 01:30", "10-28 01:30"):
        assert f"2026-{tick}:00" in text
    assert "[1] {&quot;b&quot;: &quot;&lt;b&gt;&quot;}" in text
    assert reverse("admin:tasks_app_task_change", args=[task_id]) in text
    assert 'name="_save"' not in text
    assert admin_client.get(page(declared("gone", active=False))).status_code == 200
    broken = declared("broken", timezone="Mars/Olympus")
    assert "is unknown" in admin_client.get(page(broken)).content.decode()


def test_sensitive_arguments_of_a_schedule_are_shown_to_nobody(admin_client: Client) -> None:
    """By name or by position."""
    schedule = declared(
        task="sample.sign_in", args=["ann", "hunter2"], kwargs={"password": "hunter2"}
    )
    text = admin_client.get(page(schedule)).content.decode()
    assert "hunter2" not in text and "ann" in text and "[hidden]" in text


def test_pause_and_resume_say_what_they_did_and_what_they_skipped(admin_client: Client) -> None:
    """The log has those that were changed."""
    a, b = declared("a"), declared("b", paused=True)
    assert act(admin_client, "pause_selected", a, b) == [
        "Paused 1 schedule: a.",
        "Skipped 1 schedule, already paused: b.",
    ]
    assert set(Schedule.objects.values_list("paused", flat=True)) == {True}
    assert act(admin_client, "resume_selected", a, b) == ["Resumed 2 schedules: a, b."]
    assert act(admin_client, "resume_selected", a) == ["Skipped 1 schedule, not paused: a."]
    assert [entry.change_message for entry in LogEntry.objects.order_by("pk")] == [
        "Paused it.",
        "Resumed it.",
        "Resumed it.",
    ]


def test_run_now_enqueues_the_task_once_more_and_leaves_the_ticks_alone(
    admin_client: Client,
) -> None:
    """As declared, paused or not; one that no code declares any more has nothing to run."""
    paused, gone = declared("a", paused=True), declared("gone", active=False)
    said = act(admin_client, "run_selected", paused, gone)
    task = Task.objects.get()
    assert said == [
        f"Ran 1 schedule: a as {task.pk}.",
        "Skipped 1 schedule, no longer declared: gone.",
    ]
    assert (task.name, task.queue, task.owner, task.priority, task.args, task.kwargs) == (
        "sample.add",
        "mail",
        "ann",
        3,
        [1],
        {"b": "<b>"},
    )
    assert (task.max_attempts, task.timeout_seconds) == (2, 9)
    after = Schedule.objects.get(name="a")
    assert (after.next_tick, after.last_tick) == (paused.next_tick, None)
    assert LogEntry.objects.get().change_message == f"Ran it as {task.pk}."


@pytest.mark.django_db(transaction=True)
def test_workers_hear_of_a_schedule_that_is_run_now(admin_client: Client) -> None:
    """After the commit."""
    schedule = declared()
    with psycopg.connect(**dsn.parameters("test"), autocommit=True) as listener:
        listener.execute("LISTEN asyncpoll_work")
        assert press(admin_client, "run", schedule) == (302, page(schedule))
        heard = [note.payload for note in listener.notifies(timeout=10, stop_after=1)]
    assert heard == ["queue:mail"]


def test_buttons_are_there_where_they_can_do_something(admin_client: Client) -> None:
    """And only as POST."""
    schedule = declared()
    shown = admin_client.get(page(schedule)).content.decode()
    assert ">Pause<" in shown and ">Run now<" in shown and ">Resume<" not in shown
    assert press(admin_client, "pause", schedule) == (302, page(schedule))
    shown = admin_client.get(page(schedule)).content.decode()
    assert ">Resume<" in shown and ">Pause<" not in shown
    address = reverse("admin:tasks_app_schedule_run", args=[schedule.pk])
    assert admin_client.get(address).status_code == 405
    schedule.pk = 999_999
    assert press(admin_client, "run", schedule)[0] == 404


def test_each_action_needs_its_own_permission() -> None:
    """Looking is one, pausing another, running a third."""
    schedule = declared()
    viewer = staff("view_schedule")
    assert viewer.get(page(schedule)).status_code == 200
    assert ">Pause<" not in viewer.get(page(schedule)).content.decode()
    for button in ("pause", "resume", "run"):
        assert press(viewer, button, schedule)[0] == 403
    assert press(staff("view_schedule", "pause_schedule"), "run", schedule)[0] == 403
    assert press(staff("view_schedule", "run_schedule"), "pause", schedule)[0] == 403
    assert press(staff("pause_schedule"), "pause", schedule)[0] == 302
    assert staff("run_schedule").get(page(schedule)).status_code == 403
    assert press(Client(), "run", schedule)[1].startswith("/admin/login/")
    assert not Task.objects.exists()
