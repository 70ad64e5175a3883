"""What the search box takes: exact values only, since no index serves LIKE '%…%' over millions of rows."""

from __future__ import annotations

from uuid import UUID

from django.db.models import Q

_FIELDS = {"id": "id", "type": "name", "owner": "owner", "queue": "queue", "worker": "worker"}
_UUID_FIELDS = {"id", "worker"}

HELP = "An exact task id, type or owner. Say which with id:, type:, owner:, queue: or worker:, for example owner:billing."


def condition(term: str) -> Q | None:
    """What rows match `term`; None: no row can."""
    prefix, colon, rest = term.partition(":")
    if colon and prefix in _FIELDS:
        return _exactly(_FIELDS[prefix], rest.strip())
    return _exactly("id", term) or Q(name=term) | Q(owner=term)


def _exactly(field: str, value: str) -> Q | None:
    if field not in _UUID_FIELDS:
        return Q((field, value))
    try:
        return Q((field, UUID(value)))
    except ValueError:
        return None
