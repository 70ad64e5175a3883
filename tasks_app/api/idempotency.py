"""The Idempotency-Key header: what a key and its request are in the database."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from tasks_app.errors import BadParameter

_HEADER = "Idempotency-Key"
MOST_CHARACTERS = 255


@dataclass(frozen=True, slots=True)
class Key:
    """A key of one owner, and the request that came with it."""

    id: UUID
    request: UUID


def read_key(request: HttpRequest, owner: str) -> Key | None:
    """The key that a submission came with. Its body is the same if it is the same JSON, however it is written.

    Raises BadParameter.
    """
    text = request.META.get("HTTP_IDEMPOTENCY_KEY")
    if text is None:
        return None
    if not 1 <= len(text) <= MOST_CHARACTERS:
        raise BadParameter(
            _HEADER, text, f"must have 1 to {MOST_CHARACTERS} characters; a UUID does well"
        )
    body = request.json_body  # type: ignore[attr-defined]
    return Key(_digest([owner, text]), _digest(body))


def _digest(value: Any) -> UUID:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return UUID(bytes=hashlib.sha256(text.encode()).digest()[:16])
