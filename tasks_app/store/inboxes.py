"""The verbs of inboxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tasks_app.store.call import Call
from tasks_app.store.deliveries import MOST_RESULT_BYTES, Ended, ended


@dataclass(frozen=True, slots=True)
class Entry:
    """What an owner has not acknowledged."""

    id: UUID
    ended: Ended
    delivered_at: datetime


def read_inbox(owner: str, limit: int) -> Call[list[Entry]]:
    """The oldest entries that `owner` has not acknowledged."""
    return Call(
        "read_inbox",
        {"owner": owner, "limit": limit, "most": MOST_RESULT_BYTES},
        lambda rows: [Entry(row[0], ended(row[1:11]), row[11]) for row in rows],
    )


def filled_inboxes(owners: Sequence[str]) -> Call[set[str]]:
    """Those of `owners` who have something to acknowledge."""
    return Call("filled_inboxes", {"owners": list(owners)}, lambda rows: {row[0] for row in rows})


def acknowledge(entry_id: UUID, owner: str) -> Call[datetime | None]:
    """Take an entry off its owner's list. Gives when that was done, also before; None: there is no such entry."""
    return Call(
        "acknowledge",
        {"id": entry_id, "owner": owner},
        lambda rows: rows[0][0] if rows else None,
    )
