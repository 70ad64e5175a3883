"""API tokens: `ap_<id>_<secret>`. The id finds the row, the secret is compared with its digest.

The digest is one round of SHA-256, where a password's would be thousands of rounds of something slow: those are for
secrets that people think of, of which few are worth trying. This one has 256 random bits, so that trying is hopeless at
any speed, and each request can afford the comparison.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Iterable
from dataclasses import dataclass

from tasks_app.errors import InvalidScope
from tasks_app.limits import MAX_NAME_LENGTH
from tasks_app.store import NewToken

ALL_SCOPES = frozenset({"submit", "read", "cancel", "notify", "metrics"})
"""What a token can be for, besides claiming from a queue."""
CLAIM = "claim:"
ANY_QUEUE = "claim:*"
"""Allows to claim from every queue."""

_ID_LETTERS = string.ascii_lowercase + string.digits
_ID_LENGTH = 12
_SECRET_LETTERS = string.ascii_letters + string.digits
# 62^43 is a little more than 2^256.
_SECRET_LENGTH = 43
_ID = rf"[a-z0-9]{{{_ID_LENGTH}}}"
_TOKEN = re.compile(rf"ap_({_ID})_([A-Za-z0-9]{{{_SECRET_LENGTH}}})")


@dataclass(frozen=True, slots=True)
class Presented:
    """What somebody sent as a token."""

    id: str
    digest: bytes

    def matches(self, digest: bytes) -> bool:
        """Is it the secret with this digest? Takes the same time either way."""
        return hmac.compare_digest(self.digest, digest)


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token. `text` is the only place where its secret is, ever."""

    text: str
    new: NewToken


def issue(owner: str, scopes: Iterable[str], lifetime_seconds: float | None, label: str) -> Issued:
    """Make up a token. It exists once `make_token(issued.new)` was run. Raises InvalidScope."""
    token_id = _random(_ID_LETTERS, _ID_LENGTH)
    secret = _random(_SECRET_LETTERS, _SECRET_LENGTH)
    kept = tuple(sorted({check_scope(scope) for scope in scopes}))
    new = NewToken(token_id, _digest(secret), label, owner, kept, lifetime_seconds)
    return Issued(f"ap_{token_id}_{secret}", new)


def read_token(text: str) -> Presented | None:
    """The token in `text`, None where it can't be one of ours."""
    match = _TOKEN.fullmatch(text)
    return None if match is None else Presented(match[1], _digest(match[2]))


def id_of(text: str) -> str | None:
    """The id in a whole token, or in a part of one that has it."""
    parts = text.strip().removeprefix("ap_").split("_")
    return parts[0] if re.fullmatch(_ID, parts[0]) else None


def check_scope(scope: str) -> str:
    """`scope`, if it is one. Raises InvalidScope."""
    queue = scope.removeprefix(CLAIM)
    claims = queue != scope and queue.isprintable() and 0 < len(queue) <= MAX_NAME_LENGTH
    if scope not in ALL_SCOPES and not claims:
        raise InvalidScope(
            f"{scope[:MAX_NAME_LENGTH]!r} is no scope; use {', '.join(sorted(ALL_SCOPES))}, or claim:QUEUE "
            f"(claim:* for every queue)."
        )
    return scope


def _random(letters: str, length: int) -> str:
    return "".join(secrets.choice(letters) for _ in range(length))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
