"""Tokens in the admin: made, shown once, revoked, never edited."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from tasks_app.models import Token
from tasks_app.store import make_token
from tasks_app.store.driver import run
from tasks_app.tokens import issue, read_token
from tests.integration.test_admin_actions import staff

pytestmark = pytest.mark.django_db

LIST = "admin:tasks_app_token_changelist"
ADD = "admin:tasks_app_token_add"
FORM = {"label": "phone", "owner": "alice", "scopes": "read, claim:mail", "days": "7"}


def made(owner: str = "alice", **values: object) -> Token:
    """A token."""
    new = issue(owner, ["read"], 3_600.0, "").new
    run(make_token(new))
    Token.objects.filter(pk=new.id).update(**values)
    return Token.objects.get(pk=new.id)


def page(token: Token) -> str:
    return reverse("admin:tasks_app_token_change", args=[token.pk])


def test_a_token_is_shown_once_and_kept_as_a_digest(admin_client: Client) -> None:
    """On the answer to the form, which nobody caches; not in a cookie, a log or any later page."""
    answer = admin_client.post(reverse(ADD), FORM)
    assert answer.status_code == 200 and "no-store" in answer.headers["Cache-Control"]
    [text] = set(re.findall(r"ap_[a-z0-9]{12}_[A-Za-z0-9]{43}", answer.content.decode()))
    token = Token.objects.get()
    presented = read_token(text)
    assert presented is not None and presented.matches(bytes(token.digest))
    assert (token.owner, token.label, token.scopes) == ("alice", "phone", ["claim:mail", "read"])
    assert token.expires_at is not None and token.expires_at - token.created_at == timedelta(days=7)
    secret = text.split("_")[2]
    later = [
        admin_client.get(page(token)),
        admin_client.get(reverse(LIST)),
        admin_client.get("/admin/"),
    ]
    for response in later:
        assert response.status_code == 200 and secret not in response.content.decode()
    assert secret not in str(admin_client.cookies) + str(dict(admin_client.session))
    entry = LogEntry.objects.get()
    assert entry.object_repr == f"ap_{token.pk}" and secret not in entry.change_message


def test_the_form_has_one_button(admin_client: Client) -> None:
    """The two others would do the same: after each token its own page is shown."""
    form = admin_client.get(reverse(ADD)).content.decode()
    assert 'name="_save"' in form
    assert 'name="_continue"' not in form and 'name="_addanother"' not in form


def test_a_token_that_never_expires_has_to_be_asked_for(admin_client: Client) -> None:
    """By leaving the days empty."""
    assert 'value="90"' in admin_client.get(reverse(ADD)).content.decode()
    admin_client.post(reverse(ADD), {**FORM, "days": ""})
    assert Token.objects.get().expires_at is None


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("scopes", "reed", "is no scope"),
        ("scopes", " , ", "at least one scope"),
        ("days", "0", "greater than or equal to 1"),
        ("days", "99999", "less than or equal to"),
        ("owner", "x" * 201, "at most 200 characters"),
    ],
)
def test_a_wrong_form_makes_nothing(
    admin_client: Client, field: str, value: str, says: str
) -> None:
    """And says why."""
    answer = admin_client.post(reverse(ADD), {**FORM, field: value})
    assert says in answer.content.decode()
    assert not Token.objects.exists()


def test_the_list_says_which_tokens_are_active(admin_client: Client) -> None:
    """And which were revoked, or have expired."""
    now = datetime.now(UTC)
    made("<b>")
    made("r", revoked_at=now)
    made("e", expires_at=now - timedelta(seconds=1))
    text = admin_client.get(reverse(LIST)).content.decode()
    for word in (">active<", ">revoked<", ">expired<", "&lt;b&gt;"):
        assert word in text


def test_revoking_says_what_it_did(admin_client: Client) -> None:
    """And what had been done before."""
    first, second = made(), made(revoked_at=datetime.now(UTC))
    data = {"action": "revoke_selected", "_selected_action": [first.pk, second.pk]}
    answer = admin_client.post(reverse(LIST), data, follow=True)
    assert {str(message) for message in answer.context["messages"]} == {
        f"Revoked 1 token: ap_{first.pk}.",
        f"Skipped 1 token, revoked before: ap_{second.pk}.",
    }
    assert Token.objects.get(pk=first.pk).revoked_at is not None
    assert [entry.change_message for entry in LogEntry.objects.all()] == ["Revoked it."]


def test_the_page_has_a_button_that_revokes(admin_client: Client) -> None:
    """Once: afterwards there is nothing left to do."""
    token = made()
    button = reverse("admin:tasks_app_token_revoke", args=[token.pk])
    assert f'action="{button}"' in admin_client.get(page(token)).content.decode()
    assert admin_client.get(button).status_code == 405
    answer = admin_client.post(button, follow=True)
    assert answer.redirect_chain == [(page(token), 302)]
    assert [str(message) for message in answer.context["messages"]] == [
        f"Revoked 1 token: ap_{token.pk}."
    ]
    assert button not in answer.content.decode()
    assert Token.objects.get(pk=token.pk).revoked_at is not None
    assert [entry.change_message for entry in LogEntry.objects.all()] == ["Revoked it."]
    assert admin_client.post(button.replace(token.pk, "nobody")).status_code == 404


def test_nothing_of_a_token_can_be_edited_or_deleted(admin_client: Client) -> None:
    """Not even by a superuser: a revoked token stays as a record."""
    token = made()
    assert 'name="owner"' not in admin_client.get(page(token)).content.decode()
    assert admin_client.post(page(token), FORM).status_code == 403
    delete = reverse("admin:tasks_app_token_delete", args=[token.pk])
    assert admin_client.post(delete, {"post": "yes"}).status_code == 403
    assert Token.objects.get().owner == "alice"


def test_each_thing_needs_its_own_permission() -> None:
    """Looking, making and revoking."""
    token = made()
    viewer = staff("view_token")
    assert viewer.get(page(token)).status_code == 200
    assert viewer.post(reverse(ADD), FORM).status_code == 403
    data = {"action": "revoke_selected", "_selected_action": [token.pk]}
    viewer.post(reverse(LIST), data)
    staff("add_token", "view_token").post(reverse(LIST), data)
    assert Token.objects.get().revoked_at is None
    assert staff("add_token").post(reverse(ADD), FORM).status_code == 200
    assert staff("revoke_token").get(page(token)).status_code == 403
    button = reverse("admin:tasks_app_token_revoke", args=[token.pk])
    assert button not in viewer.get(page(token)).content.decode()
    assert viewer.post(button).status_code == 403
    assert Token.objects.get(pk=token.pk).revoked_at is None
    staff("revoke_token", "view_token").post(reverse(LIST), data)
    assert Token.objects.get(pk=token.pk).revoked_at is not None
    assert Client().post(reverse(ADD), FORM).status_code == 302
