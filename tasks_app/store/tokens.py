"""The verbs of API tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import orjson

from tasks_app.store.call import Call, Rows

TOUCH_SECONDS = 900.0
"""How coarse `last_used_at` is: a token in steady use costs one write in so long."""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token to be kept. `lifetime_seconds` None: for ever."""

    id: str
    digest: bytes
    label: str
    owner: str
    scopes: tuple[str, ...]
    lifetime_seconds: float | None


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """A token as it was read. `expires_in` and `idle` are seconds from then; None: never, not yet used."""

    id: str
    digest: bytes
    owner: str
    scopes: frozenset[str]
    revoked: bool
    expires_in: float | None
    idle: float | None


def make_token(new: NewToken) -> Call[datetime | None]:
    """Keep a token; gives when it expires."""
    params = {
        "id": new.id,
        "digest": new.digest,
        "label": new.label,
        "owner": new.owner,
        "scopes": orjson.dumps(new.scopes).decode(),
        "lifetime": new.lifetime_seconds,
    }
    return Call("make_token", params, lambda rows: rows[0][0])


def find_tokens(ids: Sequence[str]) -> Call[dict[str, TokenFacts]]:
    """Those of `ids` that are tokens, also revoked and expired ones."""
    return Call("find_tokens", {"ids": list(ids)}, _facts)


def revoke_token(token_id: str) -> Call[bool]:
    """End a token. False: it had been revoked before, or is unknown."""
    return Call("revoke_token", {"id": token_id}, bool)


def touch_tokens(ids: Sequence[str]) -> Call[None]:
    """Note that these tokens are in use."""
    return Call("touch_tokens", {"ids": list(ids), "every": TOUCH_SECONDS}, lambda rows: None)


def _facts(rows: Rows) -> dict[str, TokenFacts]:
    return {
        row[0]: TokenFacts(row[0], bytes(row[1]), row[2], frozenset(orjson.loads(row[3])), *row[4:])
        for row in rows
    }
