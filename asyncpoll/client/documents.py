"""Bodies as JSON objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from asyncpoll.client.exchange import Reply
from asyncpoll.client.redaction import brief

# Longer than any hold, pause or progress: 30,000 years in milliseconds.
_LARGEST: Final = 1e15


class Unreadable(ValueError):
    """A document that is not what the protocol promises."""


def document_in(reply: Reply) -> Mapping[str, Any]:
    """The JSON object in an answer; an empty one in an empty body. Raises Unreadable."""
    try:
        document = json.loads(reply.body) if reply.body else {}
    except (ValueError, RecursionError) as error:
        kind = brief(reply.headers.get("content-type", "no content type"), 80)
        raise Unreadable(f"it is no JSON but {kind}") from error
    if not isinstance(document, dict):
        raise Unreadable(f"it is a JSON {type(document).__name__} and not an object")
    return document


def problem_in(reply: Reply) -> Mapping[str, Any]:
    """The problem document in an answer; empty if there is none."""
    try:
        document = document_in(reply)
    except Unreadable:
        return {}
    return document if "type" in document and "status" in document else {}


def number(value: Any) -> float | None:
    """A number that makes sense, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -_LARGEST <= value <= _LARGEST else None


def milliseconds(document: Mapping[str, Any], name: str) -> float | None:
    """A duration, or None if there is none that makes sense."""
    value = number(document.get(name))
    return None if value is None or value < 0 else value


def objects(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in a list; none if there is no such list."""
    found = document.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
