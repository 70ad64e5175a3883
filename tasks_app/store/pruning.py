"""The verbs that delete what has been kept long enough."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

from tasks_app.store.call import Call

C = TypeVar("C")

_LOWEST_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Batch(Generic[C]):
    """What one statement deleted, and where the next one goes on (None: it found nothing to do)."""

    deleted: int
    cursor: C | None


def prune(
    older_than_seconds: float, limit: int, since: datetime | None = None, alone: bool = False
) -> Call[Batch[datetime]]:
    """Delete tasks that ended longer ago than that, from `since` on. `alone`: nothing while somebody else does so."""
    return Call(
        "prune",
        {"older_than": older_than_seconds, "limit": limit, "since": since, "alone": alone},
        lambda rows: Batch(rows[0][0], rows[0][1]),
    )


def count_old(older_than_seconds: float) -> Call[int]:
    """How many tasks ended longer ago than that."""
    return Call("count_old", {"older_than": older_than_seconds}, lambda rows: int(rows[0][0]))


def prune_orphans(
    older_than_seconds: float, limit: int, after: UUID | None = None, alone: bool = False
) -> Call[Batch[UUID]]:
    """Look at the history of `limit` tasks made longer ago than that, and delete it where the task is gone."""
    return Call(
        "prune_orphans",
        {
            "older_than": older_than_seconds,
            "limit": limit,
            "after": after or _LOWEST_ID,
            "alone": alone,
        },
        lambda rows: Batch(rows[0][0], rows[0][1]),
    )


def prune_workers(older_than_seconds: float) -> Call[int]:
    """Delete worker processes that ended longer ago than that; gives how many."""
    return Call("prune_workers", {"older_than": older_than_seconds}, len)


def prune_deliveries(older_than_seconds: float, limit: int, alone: bool = False) -> Call[int]:
    """Delete deliveries that ended longer ago than that, with their attempts; gives how many."""
    return Call(
        "prune_deliveries", {"older_than": older_than_seconds, "limit": limit, "alone": alone}, len
    )


def prune_inboxes(
    acknowledged_seconds: float | None,
    ignored_seconds: float | None,
    limit: int,
    alone: bool = False,
) -> Call[int]:
    """Delete entries that were acknowledged, or never, for so long; None: such are kept. Gives how many."""
    return Call(
        "prune_inboxes",
        {
            "acknowledged": acknowledged_seconds,
            "ignored": ignored_seconds,
            "limit": limit,
            "alone": alone,
        },
        len,
    )
