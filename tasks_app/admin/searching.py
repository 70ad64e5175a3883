"""What the search box takes: exact values only, since no index serves LIKE '%…%' over millions of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from django.db.models import Q

_FIELDS = {"id": "id", "type": "name", "owner": "owner", "queue": "queue", "worker": "worker"}
_ENTRY_FIELDS = {"id": "id", "owner": "owner"}
_DELIVERY_FIELDS = {"id": "id", "task": "task_id", "owner": "owner"}
_UUID_FIELDS = {"id", "task_id", "worker"}

HELP = "An exact task id, type or owner. Say which with id:, type:, owner:, queue: or worker:, for example owner:billing."
ENTRY_HELP = (
    "An exact owner or an entry's id. Say which with owner: or id:, for example owner:billing."
)
DELIVERY_HELP = "An exact task id, owner or a delivery's id. Say which with task:, owner: or id:, for example owner:billing."


def condition(term: str) -> Q | None:
    """What tasks match `term`; None: none can."""
    return _condition(
        term, _FIELDS, lambda text: _exactly("id", text) or Q(name=text) | Q(owner=text)
    )


def entry_condition(term: str) -> Q | None:
    """The same for inbox entries."""
    return _condition(term, _ENTRY_FIELDS, lambda text: _exactly("id", text) or Q(owner=text))


def delivery_condition(term: str) -> Q | None:
    """The same for deliveries."""
    return _condition(term, _DELIVERY_FIELDS, _of_delivery)


def span(term: str) -> Q | None:
    """Among which rows those of `term` are looked for; None: the term names one row, or those of one task."""
    prefix, colon, rest = term.partition(":")
    if colon and prefix == "owner" and rest.strip():
        return Q(owner=rest.strip())
    names_one = prefix in ("id", "task") if colon else _exactly("id", term) is not None
    return None if names_one else Q()


def _condition(term: str, fields: Mapping[str, str], otherwise: Callable[[str], Q]) -> Q | None:
    prefix, colon, rest = term.partition(":")
    if colon and prefix in fields:
        return _exactly(fields[prefix], rest.strip())
    return otherwise(term)


def _of_delivery(term: str) -> Q:
    by_task, by_id = _exactly("task_id", term), _exactly("id", term)
    return Q(owner=term) if by_task is None or by_id is None else by_task | by_id


def _exactly(field: str, value: str) -> Q | None:
    if field not in _UUID_FIELDS:
        return Q((field, value))
    try:
        return Q((field, UUID(value)))
    except ValueError:
        return None
