"""Queues whose tasks are run outside this code base, so that `runworker` leaves them alone.

Imports no models: a project's Celery module, which reserves one, is imported before Django's apps are loaded.
"""

from __future__ import annotations

_outside: dict[str, str] = {}


def reserve(queue: str, by: str) -> None:
    """From now on the tasks of `queue` are run outside; `by` says for whom, in messages."""
    _outside.setdefault(queue, by)


def reserved_by(queue: str) -> str | None:
    """For whom `queue` is reserved; None: workers of ours may take it."""
    return _outside.get(queue)


def outside() -> tuple[str, ...]:
    """Every reserved queue, by name."""
    return tuple(sorted(_outside))
