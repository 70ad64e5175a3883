"""manage.py createwebhooksecret: told once, replaced on request."""

from __future__ import annotations

import re
from base64 import b64encode
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tasks_app.models import WebhookSecret
from tasks_app.store import find_webhook_secret
from tasks_app.store.driver import run
from tasks_app.webhooks.signing import recover

pytestmark = pytest.mark.django_db


def created(*arguments: str) -> str:
    """What the command prints."""
    out, err = StringIO(), StringIO()
    call_command("createwebhooksecret", "--owner", *arguments, stdout=out, stderr=err)
    assert "signed with" in err.getvalue()
    return out.getvalue()


def test_a_secret_is_printed_alone_and_once():
    """In the form that receivers' libraries take; a second one only in place of the first."""
    text = created("acme")
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=\n", text)
    with pytest.raises(CommandError, match="--rotate"):
        created("acme")
    assert created("acme", "--rotate") != text
    row = WebhookSecret.objects.get(pk="acme")
    assert row.previous_salt is not None


def test_what_is_stored_is_not_the_secret():
    """But brings it back."""
    text = created("")
    kept = run(find_webhook_secret(""))
    assert [f"whsec_{b64encode(key).decode()}\n" for key in recover("", [kept])] == [text]
    assert run(find_webhook_secret("other")) is None
