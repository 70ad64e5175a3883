"""The admin's view of the message centre: read-only, in pages that nobody counts."""

from __future__ import annotations

import re

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tasks_app.models import Delivery, InboxEntry, Task
from tasks_app.store import (
    Attempt,
    Route,
    acknowledge,
    fill_inboxes,
    lock_task,
    promise,
    record_delivery,
    take_deliveries,
)
from tasks_app.store.driver import run
from tasks_app.webhooks.targets import INBOX, webhook
from tests.integration.admin_support import failed, pending, succeeded

pytestmark = pytest.mark.django_db
HOOK = webhook("https://hooks.example.com/in?key=s3cr3t")
ENTRIES, DELIVERIES = "inboxentry", "delivery"


def told(task_id, *targets):
    with transaction.atomic():
        run(lock_task(task_id))
        for target in targets:
            run(promise(task_id, target))
    run(fill_inboxes(100))
    return task_id


def listed(client, model, **query):
    response = client.get(reverse(f"admin:tasks_app_{model}_changelist"), query)
    assert response.status_code == 200
    return response.context["cl"]


def page(client, model, pk):
    response = client.get(reverse(f"admin:tasks_app_{model}_change", args=[pk]))
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize("model", [ENTRIES, DELIVERIES])
def test_lists_never_count(admin_client, model):
    """Nor sort, nor search by anything but an index; a page leads to the older ones."""
    for _ in range(51):
        told(succeeded(), INBOX)
    for query in ({}, {"q": "acme"}, {"state": "DELIVERED"}, {"acknowledged": "no"}):
        query = {key: value for key, value in query.items() if key == "q" or model[0] == key[0]}
        with CaptureQueriesContext(connection) as captured:
            shown = listed(admin_client, model, **query)
        # Where a filtered page stops looking is asked of the index of ids.
        statements = [
            each["sql"]
            for each in captured
            if f'"tasks_app_{model}"' in each["sql"] and "OFFSET 50000" not in each["sql"]
        ]
        assert len(statements) == 1
        assert not re.search(r"COUNT\(|DISTINCT|LIKE|OFFSET", statements[0], re.IGNORECASE)
        assert len(shown.result_list) == 50
        older = admin_client.get(
            reverse(f"admin:tasks_app_{model}_changelist") + shown.older_url
        ).context["cl"]
        assert len(older.result_list) == 1


def test_what_was_acknowledged_can_be_told_apart(admin_client):
    """And found by owner."""
    told(succeeded(owner="acme"), INBOX)
    told(failed(owner="zenith"), INBOX)
    first, second = InboxEntry.objects.order_by("created_at")
    run(acknowledge(first.pk, "acme"))
    assert list(listed(admin_client, ENTRIES, acknowledged="yes").result_list) == [first]
    assert list(listed(admin_client, ENTRIES, acknowledged="no").result_list) == [second]
    assert list(listed(admin_client, ENTRIES, q="owner:zenith").result_list) == [second]
    assert list(listed(admin_client, ENTRIES, q=str(first.pk)).result_list) == [first]
    assert "no route" in page(admin_client, ENTRIES, second.pk)


def test_each_attempt_of_a_delivery_is_shown(admin_client):
    """With its status and its error; the query of the address, which may be a secret, is not."""
    task_id = told(succeeded(), HOOK)
    for status, error in ((503, "HTTP 503"), (None, "CertificateRefused")):
        [due] = run(take_deliveries({Route("acme", HOOK.host): 1}, 0.0))
        run(record_delivery(due, Attempt(status, error, 12.3), 0.0))
    told(pending(), HOOK)
    [delivery] = listed(admin_client, DELIVERIES, q=f"task:{task_id}").result_list
    assert list(listed(admin_client, DELIVERIES, q=str(task_id)).result_list) == [delivery]
    assert list(listed(admin_client, DELIVERIES, state="DUE").result_list) == [delivery]
    text = page(admin_client, DELIVERIES, delivery.pk)
    assert "HTTP 503" in text
    assert "CertificateRefused" in text
    assert "https://hooks.example.com/in" in text
    assert "s3cr3t" not in text + str(listed(admin_client, DELIVERIES))


@pytest.mark.parametrize("model", [ENTRIES, DELIVERIES])
def test_nothing_can_be_added_changed_or_deleted(admin_client, model):
    """Not even by a superuser."""
    told(succeeded(), INBOX)
    [row] = listed(admin_client, model).result_list
    for name, arguments in (("add", []), ("delete", [row.pk])):
        address = reverse(f"admin:tasks_app_{model}_{name}", args=arguments)
        assert admin_client.post(address).status_code == 403
    change = reverse(f"admin:tasks_app_{model}_change", args=[row.pk])
    assert admin_client.post(change, {"owner": "me"}).status_code == 403
    assert Delivery.objects.get().owner == "acme"


def test_an_entry_does_not_quote_sensitive_arguments(admin_client):
    """Nor does one whose task is gone, of which nobody knows any more what it was given."""
    secret = "hunter2 or so"
    task_id = told(
        failed(f"{secret!r} is wrong", name="sample.sign_in", args=f'["ann", "{secret}"]'), INBOX
    )
    [entry] = listed(admin_client, ENTRIES).result_list
    text = page(admin_client, ENTRIES, entry.pk)
    assert secret not in text and "OSError: &#x27;[hidden]&#x27; is wrong" in text
    Task.objects.filter(pk=task_id).delete()
    text = page(admin_client, ENTRIES, entry.pk)
    assert secret not in text and "OSError: [hidden]" in text
