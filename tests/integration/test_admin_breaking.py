"""What nobody sends by accident: the admin answers, and neither fails nor does anything."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.core import signing
from django.db import connection
from django.test import Client
from django.urls import reverse

from tasks_app.limits import new_task_id
from tasks_app.models import Order, Task, Token
from tests.integration.admin_support import LIST, page, pending, scenery
from tests.integration.test_admin_actions import staff

pytestmark = pytest.mark.django_db
ASK = "admin:tasks_app_task_order"
LISTS = (
    "task",
    "inboxentry",
    "delivery",
    "workerprocess",
    "schedule",
    "token",
    "order",
    "overview",
)
STRANGE = ("\x00a", "x" * 5_000, "'\"<b>", "id:\x00", "\ud800")
SCRIPT = "<script>alert(1)</script>"


@pytest.mark.parametrize("model", LISTS)
def test_no_address_of_a_list_is_a_failure(admin_client: Client, model: str) -> None:
    """Searches, filters, pages and ranges of every kind."""
    pending()
    address = reverse(f"admin:tasks_app_{model}_changelist")
    for word in (
        "q",
        "p",
        "status",
        "type",
        "queue",
        "state",
        "stopped",
        "acknowledged",
        "range",
        "o",
    ):
        for value in STRANGE:
            response = admin_client.get(address, {word: value.encode("utf-8", "surrogatepass")})
            assert response.status_code in (200, 302, 400), (word, value)


def test_no_address_of_the_page_that_confirms_is_a_failure(admin_client: Client) -> None:
    """It counts nothing that can't be."""
    for word in ("q", "status", "type", "queue"):
        for value in (*STRANGE, "owner:a\x00"):
            response = admin_client.get(
                reverse(ASK), {word: value.encode("utf-8", "surrogatepass")}
            )
            assert response.status_code == 200
            assert not response.context["counted"]


@pytest.mark.parametrize("model", LISTS[:-1])
def test_no_page_of_what_is_not_there_is_a_failure(admin_client: Client, model: str) -> None:
    """Of a row that is gone, or never was one."""
    for pk in (str(new_task_id()), "x", "9" * 60, "_00", "-1", "%"):
        for word in ("change", "history", "delete"):
            address = reverse(f"admin:tasks_app_{model}_{word}", args=[pk])
            assert admin_client.get(address).status_code in (302, 403, 404), address


@pytest.mark.parametrize("model", ["task", "schedule", "token"])
def test_an_action_over_what_is_no_row_is_refused(admin_client: Client, model: str) -> None:
    """Our page has no such boxes to tick."""
    scenery()
    action = {"task": "remove_selected", "schedule": "run_selected", "token": "revoke_selected"}[
        model
    ]
    count = Task.objects.count()
    for pk in ("x", "\x00", "9" * 60, ""):
        data = {"action": action, "_selected_action": [pk]}
        response = admin_client.post(reverse(f"admin:tasks_app_{model}_changelist"), data)
        assert response.status_code in (302, 400), pk
    assert Task.objects.count() == count and not LogEntry.objects.exists()
    assert not Token.objects.filter(revoked_at__isnull=False).exists()


def test_a_forged_confirmation_is_refused(admin_client: Client) -> None:
    """Signed by another key or for another purpose, changed, or missing."""
    pending()
    facts = [None, "PENDING", None, None, str(new_task_id()), 1]
    for frozen in (
        "",
        "x",
        "\x00",
        signing.dumps(facts),
        signing.dumps(facts, key="another", salt="asyncpoll.order"),
        admin_client.get(reverse(ASK), {"status": "PENDING"}).context["frozen"] + "x",
    ):
        response = admin_client.post(
            reverse(ASK), {"frozen": frozen, "verb": "cancel"}, follow=True
        )
        assert "Nothing was done" in response.content.decode()
    assert not Order.objects.exists()


def test_a_confirmation_needs_the_page_s_own_token() -> None:
    """A foreign page can't confirm for somebody who is signed in."""
    pending()
    client = staff("view_task", "cancel_task")
    frozen = client.get(reverse(ASK), {"status": "PENDING"}).context["frozen"]
    client.handler.enforce_csrf_checks = True
    for address in (reverse(ASK), reverse(LIST), reverse("admin:tasks_app_token_add")):
        assert client.post(address, {"frozen": frozen, "verb": "cancel"}).status_code == 403
    assert not Order.objects.exists()


def test_what_comes_from_outside_is_escaped_wherever_it_is_shown(admin_client: Client) -> None:
    """Names of schedules and workers, addresses of webhooks, labels, owners, errors of deliveries and inboxes."""
    scenery()
    with connection.cursor() as cursor:
        for statement in (
            "UPDATE tasks_app_schedule SET name = %s, task = %s, queue = %s, owner = %s",
            "UPDATE tasks_app_workerprocess SET hostname = %s, queues = jsonb_build_array(%s::text)",
            "UPDATE tasks_app_delivery SET target = 'https://a.example/' || %s, host = %s, owner = %s, last_error = %s",
            "UPDATE tasks_app_inboxentry SET owner = %s, name = %s, queue = %s, error_type = %s, error_message = %s",
            "UPDATE tasks_app_token SET label = %s, owner = %s",
            "UPDATE tasks_app_order SET placed_by = %s, queue = %s, note = %s",
            "UPDATE tasks_app_task SET queue = %s, name = %s, owner = %s",
        ):
            cursor.execute(statement, [SCRIPT] * statement.count("%s"))
    addresses = [reverse("admin:index"), reverse("admin:tasks_app_overview_changelist")]
    for model in LISTS[:-1]:
        row = apps.get_model("tasks_app", model).objects.first()
        addresses += [
            reverse(f"admin:tasks_app_{model}_changelist"),
            reverse(f"admin:tasks_app_{model}_change", args=[row.pk]),
        ]
    shown = 0
    for address in addresses:
        html = admin_client.get(address).content.decode()
        assert SCRIPT not in html, address
        shown += html.count("&lt;script&gt;")
    assert shown > 20


def test_a_page_of_a_deleted_task_leads_back(admin_client: Client) -> None:
    """With a word about it, also from its buttons."""
    task_id = pending()
    Task.objects.all().delete()
    for address in (page(task_id), reverse("admin:tasks_app_task_history", args=[task_id])):
        assert admin_client.get(address, follow=True).status_code == 200
    button = reverse("admin:tasks_app_task_cancel", args=[task_id])
    response = admin_client.post(button, follow=True)
    assert "Skipped 1 task, not found" in response.content.decode()


def test_who_has_no_permission_sees_nothing(admin_client: Client) -> None:
    """Neither lists nor pages, documents, plans or confirmations; nor does who may view something else."""
    scenery()
    task_id = Task.objects.filter(status="SUCCESS").latest("id").pk
    addresses = [reverse(f"admin:tasks_app_{model}_changelist") for model in LISTS]
    addresses += [page(task_id), reverse("admin:tasks_app_task_history", args=[task_id])]
    addresses += [reverse("admin:tasks_app_task_download", args=[task_id, "result"])]
    addresses += [reverse(ASK), reverse("admin:tasks_app_overview_plan")]
    addresses += [reverse("admin:tasks_app_token_add")]
    for client in (staff(), staff("view_logentry")):
        assert {client.get(address).status_code for address in addresses} == {403}
        assert "tasks_app" not in client.get(reverse("admin:index")).content.decode()
    assert {Client().get(address).status_code for address in addresses} == {302}
    assert {admin_client.get(address).status_code for address in addresses} == {200}
