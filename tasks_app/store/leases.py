"""The verbs of executors outside this code base: claims that can be repeated, and leases that are kept by reporting.

A claim's id stands in its tasks' `worker`, so that `commit` and `rescue` fence it like any worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import orjson

from asyncpoll.contract import Status
from tasks_app.store.call import Call
from tasks_app.store.patience import PATIENCE
from tasks_app.store.rows import Claimed

# The first of the two numbers of our advisory locks on claims; the second is the claim's hash.
_CLAIM_LOCKS = 0x61_70_63_6C


class Leased(NamedTuple):
    """An attempt that an executor outside holds: until `lease_expires_at`, which never reaches past `deadline`."""

    task: Claimed
    ran_seconds: float
    lease_expires_at: datetime
    deadline: datetime


@dataclass(frozen=True, slots=True)
class Settled:
    """A task whose attempt is over. `same`: that attempt has left it just as it wants to leave it once more."""

    name: str
    status: Status
    version: int
    same: bool


def lock_claim(claim: UUID) -> Call[None]:
    """Wait until nobody else asks under `claim`, and keep others waiting until the transaction ends."""
    return Call("lock_claim", {"space": _CLAIM_LOCKS, "claim": claim}, lambda rows: None)


def find_claim(claim: UUID) -> Call[list[UUID] | None]:
    """The tasks taken under `claim`; None: nothing was, or it is over."""
    return Call(
        "find_claim",
        {"claim": claim},
        lambda rows: [UUID(task_id) for task_id in rows[0][0]] if rows else None,
    )


def keep_claim(claim: UUID, tasks: Sequence[UUID], lease_seconds: float) -> Call[None]:
    """Remember what was taken under `claim`."""
    text = orjson.dumps([str(task_id) for task_id in tasks]).decode()
    return Call(
        "keep_claim", {"claim": claim, "tasks": text, "lease": lease_seconds}, lambda rows: None
    )


def extend(
    claim: UUID,
    tasks: Sequence[UUID],
    lease_seconds: float,
    *,
    attempt: int | None = None,
    whole: bool = True,
) -> Call[list[Leased]]:
    """Give those of `tasks` that `claim` still holds a fresh lease; `attempt` None: whichever attempt it holds.

    `whole` False leaves the arguments out: they are empty then. Fails if somebody keeps one locked for a second.
    """
    return Call(
        "extend",
        {
            "claim": claim,
            "ids": list(tasks),
            "lease": lease_seconds,
            "attempt": attempt,
            "whole": whole,
            "patience": PATIENCE,
        },
        lambda rows: [Leased(Claimed(*row[:-3]), *row[-3:]) for row in rows],
    )


def settled(
    claim: UUID,
    task_id: UUID,
    attempt: int,
    status: Status,
    *,
    result: str | None = None,
    error_type: str = "",
    error_message: str = "",
) -> Call[Settled | None]:
    """How a task stands that `claim` no longer holds, compared with where `attempt` wants to leave it; None: gone."""
    return Call(
        "settled",
        {
            "claim": claim,
            "id": task_id,
            "attempt": attempt,
            "status": status.value,
            "result": result,
            "error_type": error_type,
            "error_message": error_message,
        },
        lambda rows: (
            Settled(rows[0][0], Status(rows[0][1]), rows[0][2], rows[0][3]) if rows else None
        ),
    )
