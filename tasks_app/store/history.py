"""The verb that reads what happened to a task."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tasks_app.store.call import Call


@dataclass(frozen=True, slots=True)
class Event:
    """One version of a task. `kind` is a value of `EventKind`; `data` is JSON text."""

    version: int
    kind: str
    at: datetime
    attempt: int
    progress: float | None
    message: str
    data: str | None


def read_events(task_id: UUID, after: int, limit: int, data_bytes: int) -> Call[list[Event]]:
    """Up to `limit` versions of a task after that one, oldest first; fewer where their data takes more than that."""
    return Call(
        "read_events",
        {"id": task_id, "after": after, "limit": limit, "bytes": data_bytes},
        lambda rows: [Event(*row) for row in rows],
    )
