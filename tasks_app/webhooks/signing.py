"""Secrets of owners, and signatures as standardwebhooks.com has them.

A secret is made of SECRET_KEY and of a salt that is stored: neither a copy of the database nor one of the settings is
enough to sign. It is told once, and can be made again at each sending.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b64encode
from collections.abc import Iterable, Iterator
from datetime import datetime

from django.conf import settings
from django.utils.crypto import salted_hmac
from standardwebhooks.webhooks import Webhook

from tasks_app.store import KeptSecret

_PREFIX = "whsec_"
_SALT = "asyncpoll.webhook"
_SALT_BYTES = 32
_PROOF_BYTES = 16


def make_secret(owner: str) -> tuple[str, KeptSecret]:
    """A new secret for `owner`: the text that its receiver needs, and what is stored."""
    salt = secrets.token_bytes(_SALT_BYTES)
    secret = _derive(owner, salt, settings.SECRET_KEY)
    return _PREFIX + b64encode(secret).decode(), KeptSecret(salt, _proof(secret))


def recover(owner: str, kept: Iterable[KeptSecret]) -> Iterator[bytes]:
    """The secrets that come out right, with SECRET_KEY or one of SECRET_KEY_FALLBACKS."""
    for each in kept:
        for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
            secret = _derive(owner, each.salt, key)
            if hmac.compare_digest(_proof(secret), each.proof):
                yield secret
                break


def sign(keys: Iterable[bytes], message_id: str, at: datetime, body: str) -> dict[str, str]:
    """The headers of a message, signed with each of `keys`: a receiver that knows one of them takes it."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(Webhook(key).sign(message_id, at, body) for key in keys),
    }


def _derive(owner: str, salt: bytes, key: str | bytes) -> bytes:
    return salted_hmac(_SALT, f"{salt.hex()}:{owner}", secret=key, algorithm="sha256").digest()


def _proof(secret: bytes) -> bytes:
    return hashlib.sha256(b"proof:" + secret).digest()[:_PROOF_BYTES]
