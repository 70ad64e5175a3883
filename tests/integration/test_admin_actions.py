"""Cancel and run again from the admin: what is done, what is skipped and why, and who may."""

from __future__ import annotations

from collections.abc import Iterable
from unittest import mock
from uuid import UUID

import psycopg
import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from tasks_app.models import Task
from tasks_app.models.task import new_task_id
from tasks_app.store import cancel, dsn
from tasks_app.store.driver import run
from tests.integration.admin_support import (
    LIST,
    failed,
    page,
    pending,
    running,
    status_of,
    succeeded,
)

pytestmark = pytest.mark.django_db


def act(
    client: Client, action: str, ids: Iterable[UUID], query: str = "", **more: str
) -> list[str]:
    """Run an action of the list over `ids`; what it says."""
    data = {"action": action, "_selected_action": [str(each) for each in ids], "index": "0", **more}
    response = client.post(reverse(LIST) + query, data, follow=True)
    assert response.status_code == 200
    return [str(message) for message in response.context["messages"]]


def press(client: Client, button: str, task_id: UUID) -> tuple[int, str]:
    """Press a button of the task page; the status and where it leads."""
    response = client.post(reverse(f"admin:tasks_app_task_{button}", args=[task_id]))
    return response.status_code, response.headers.get("Location", "")


def staff(*codenames: str) -> Client:
    """A member of staff with these permissions."""
    user = User.objects.create_user("-".join(codenames) or "nobody", is_staff=True)
    user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return client


def test_cancel_says_what_it_did_and_what_it_skipped(admin_client: Client) -> None:
    """Over a mixed selection, each task is accounted for and the log has those that were changed."""
    done, asked, runs = succeeded(), running().id, running().id
    run(cancel(asked))
    waits, also_waits, unknown = pending(), pending(), new_task_id()
    said = act(admin_client, "cancel_selected", [unknown, done, asked, runs, waits, also_waits])
    assert said == [
        f"Skipped 1 task, already over (SUCCESS): {done}.",
        f"Skipped 1 task, already asked to stop: {asked}.",
        f"Asked 1 task to stop: {runs}.",
        f"Cancelled 2 tasks: {waits}, {also_waits}.",
        f"Skipped 1 task, not found: {unknown}.",
    ]
    assert status_of(waits) == status_of(also_waits) == "CANCELLED"
    assert status_of(runs) == "RUNNING" and Task.objects.get(pk=runs).cancel_requested
    assert {(entry.object_id, entry.change_message) for entry in LogEntry.objects.all()} == {
        (str(waits), "Cancelled it."),
        (str(also_waits), "Cancelled it."),
        (str(runs), "Asked it to stop."),
    }


def test_run_again_makes_new_tasks_of_those_that_are_over(admin_client: Client) -> None:
    """The new task points to the old one, which stays; what is not over is skipped."""
    over, runs = failed(kwargs='{"a": 1}'), running().id
    said = act(admin_client, "run_again_selected", [over, runs])
    new = Task.objects.get(retried_from=over)
    assert (new.status, new.kwargs, new.name) == ("PENDING", {"a": 1}, "sample.add")
    assert status_of(over) == "FAILED"
    assert said == [
        f"Ran 1 task again: {over} as {new.pk}.",
        f"Skipped 1 task, not over yet (RUNNING): {runs}.",
    ]
    [entry] = LogEntry.objects.all()
    assert entry.object_repr == f"sample.add {over}"
    assert entry.change_message == f"Ran it again as {new.pk}."


def test_a_task_that_left_the_filter_meanwhile_is_accounted_for(admin_client: Client) -> None:
    """The page showed it as PENDING; it ended before the button was pressed."""
    done = succeeded()
    said = act(admin_client, "cancel_selected", [done], query="?status=PENDING")
    assert said == [f"Skipped 1 task, already over (SUCCESS): {done}."]


def test_a_whole_filter_is_refused(admin_client: Client) -> None:
    """Nobody counted what it would touch."""
    waits = pending()
    [said] = act(admin_client, "cancel_selected", [waits], select_across="1")
    assert said.startswith("Nothing was done")
    assert status_of(waits) == "PENDING"


def test_many_ids_are_shortened_in_the_message(admin_client: Client) -> None:
    """The log has them all."""
    [said] = act(admin_client, "cancel_selected", [pending() for _ in range(13)])
    assert said.startswith("Cancelled 13 tasks: ") and said.endswith(" and 3 more.")
    assert LogEntry.objects.count() == 13


def test_a_cancel_whose_log_fails_is_not_done(admin_client: Client) -> None:
    """Both are one transaction: nothing is changed that the log does not have."""
    waits = pending()
    with (
        mock.patch("django.contrib.admin.ModelAdmin.log_change", side_effect=OSError("full")),
        pytest.raises(OSError, match="full"),
    ):
        press(admin_client, "cancel", waits)
    assert status_of(waits) == "PENDING"


def test_the_buttons_lead_to_the_task_concerned(admin_client: Client) -> None:
    """Cancel stays; run again shows the new task. Each is there only where it can do something."""
    waits = pending()
    assert "cancel/" in admin_client.get(page(waits)).content.decode()
    assert press(admin_client, "cancel", waits) == (302, page(waits))
    html = admin_client.get(page(waits)).content.decode()
    assert f"Cancelled 1 task: {waits}." in html
    assert "/cancel/" not in html and "run-again/" in html
    code, location = press(admin_client, "run_again", waits)
    new = Task.objects.get(retried_from=waits)
    assert (code, location) == (302, page(new.pk))
    assert f'<a href="{page(waits)}">{waits}</a>' in admin_client.get(location).content.decode()
    assert (
        f'<a href="{location}">{new.pk}</a> <span' in admin_client.get(page(waits)).content.decode()
    )


def test_buttons_only_take_post_with_a_token(admin_client: Client) -> None:
    """A link or a foreign page can't cancel anything."""
    waits = pending()
    address = reverse("admin:tasks_app_task_cancel", args=[waits])
    assert admin_client.get(address).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.get())
    assert strict.post(address).status_code == 403
    assert status_of(waits) == "PENDING"


def test_who_may_only_view_can_not_steer() -> None:
    """Neither by the list's actions nor by the buttons' addresses; who may change tasks can."""
    waits = pending()
    viewer = staff("view_task")
    act(viewer, "cancel_selected", [waits])
    assert press(viewer, "cancel", waits)[0] == press(viewer, "run_again", waits)[0] == 403
    assert press(staff("change_workerprocess"), "cancel", waits)[0] == 403
    assert press(Client(), "cancel", waits)[1].startswith("/admin/login/")
    assert status_of(waits) == "PENDING"
    assert press(staff("cancel_task", "run_again_task"), "cancel", waits) == (302, page(waits))
    assert status_of(waits) == "CANCELLED"


@pytest.mark.django_db(transaction=True)
def test_workers_hear_of_a_task_that_runs_again(admin_client: Client) -> None:
    """After the commit, on the channel that they listen to."""
    over = succeeded(queue="mail")
    with psycopg.connect(**dsn.parameters("test"), autocommit=True) as listener:
        listener.execute("LISTEN asyncpoll_work")
        press(admin_client, "run_again", over)
        heard = [note.payload for note in listener.notifies(timeout=10, stop_after=1)]
    assert heard == ["queue:mail"]
