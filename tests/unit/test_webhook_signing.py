"""Signatures as the specification has them, and when to try again."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from datetime import UTC, datetime
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tasks_app.store import Attempt, KeptSecret
from tasks_app.webhooks.patience import pause_after
from tasks_app.webhooks.signing import make_secret, recover, sign


def test_a_signature_is_the_one_of_the_specification():
    """Its own example."""
    key = b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = sign([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", at, '{"test": 2432232314}')
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_each_key_signs():
    """And a receiver that knows neither takes nothing."""
    (first, kept), (second, other) = make_secret("acme"), make_secret("acme")
    keys = [*recover("acme", [kept]), *recover("acme", [other])]
    headers = sign(keys, "id", datetime.now(UTC), "{}")
    for text in (first, second):
        assert Webhook(text).verify("{}", headers) == {}
    with pytest.raises(WebhookVerificationError):
        Webhook(make_secret("acme")[0]).verify("{}", headers)


def test_a_secret_takes_both_halves(settings):
    """The row without SECRET_KEY is worth nothing, nor is it for another owner; a fallback does."""
    text, kept = make_secret("acme")
    [key] = recover("acme", [kept])
    assert text == f"whsec_{b64encode(key).decode()}"
    assert list(recover("zenith", [kept])) == []
    assert kept.salt not in key
    settings.SECRET_KEY, old = "other" * 20, settings.SECRET_KEY
    assert list(recover("acme", [kept])) == []
    settings.SECRET_KEY_FALLBACKS = [old]
    assert list(recover("acme", [kept, KeptSecret(b"x", b"y")])) == [key]


def test_pauses_double_up_to_an_hour_with_jitter():
    """And end where the time is up."""
    failed = Attempt(500, "HTTP 500", 1.0)
    for number in range(1, 40):
        ceiling = min(3_600.0, 2.0 * 2 ** (number - 1))
        pauses = [pause_after(failed, number, 0.0, 86_400.0) for _ in range(20)]
        assert all(pause is not None and ceiling / 2 <= pause <= ceiling for pause in pauses)
        assert len(set(pauses)) > 1
    assert pause_after(failed, 30, 86_000.0, 86_400.0) is None
    assert pause_after(failed, 1, 0.0, 0.0) is None


@pytest.mark.parametrize(("status", "error"), [(410, "HTTP 410"), (None, "TaskGone")])
def test_what_can_not_change_is_not_tried_again(status, error):
    """A receiver that says that it is gone, and a task that is."""
    assert pause_after(Attempt(status, error, 1.0), 1, 0.0, 86_400.0) is None


def test_the_receiver_in_the_documentation_works():
    """It takes what we sign, and refuses what somebody has touched."""
    page = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", page.partition("## Webhooks")[2], re.DOTALL)
    text, kept = make_secret("acme")
    seen = []
    receiver = {"SECRET": text, "remember_once": lambda identity, message: seen.append(message)}
    exec(code, receiver)
    headers = sign(recover("acme", [kept]), "id", datetime.now(UTC), '{"a": 1}')
    assert receiver["done"](b'{"a": 1}', headers) == 204
    assert receiver["done"](b'{"a": 2}', headers) == 401
    assert seen == [{"a": 1}]
