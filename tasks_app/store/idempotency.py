"""The verbs of idempotency keys: which task a key stands for, for as long as it lives."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from tasks_app.store.call import Call
from tasks_app.store.patience import PATIENCE

KEY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Kept:
    """What a key stands for: the request it first came with, and the task that this made."""

    request: UUID
    task_id: UUID


def keep_key(key: UUID, request: UUID, task_id: UUID) -> Call[Kept]:
    """Let `key` stand for a task that the same transaction stores; gives what it stands for already, where it lives.

    Waits for another that came with the key and has not committed yet, and fails if that takes longer than a second.
    """
    return Call(
        "keep_key",
        {
            "key": key,
            "request": request,
            "task": task_id,
            "live": KEY_SECONDS,
            "patience": PATIENCE,
        },
        lambda rows: Kept(rows[0][0], rows[0][1]),
    )


def prune_keys(limit: int, alone: bool = False) -> Call[int]:
    """Delete keys that have expired; gives how many. `alone`: none while somebody else does so."""
    return Call("prune_keys", {"limit": limit, "alone": alone}, len)
