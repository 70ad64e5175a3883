"""Claiming by hand, on Django's own connection."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

from tasks_app.claiming.turns import Turns
from tasks_app.store import Claimed, claim, lanes
from tasks_app.store.driver import run


def claim_now(
    limit: int = 1,
    queues: Sequence[str] | None = None,
    worker: UUID | None = None,
    lease: float = 15.0,
) -> list[Claimed]:
    """Claim up to `limit` ready tasks, owners in turn."""
    turns = Turns(credit=0)
    turns.learn(run(lanes(queues)))
    return run(claim(worker or uuid4(), turns.allot(limit), lease))
