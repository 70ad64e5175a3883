"""Lease tokens: whoever holds one may report on one attempt at one task, and needs no other credentials.

A token is signed, so that nothing has to be stored, a repeated claim gives the same ones, and none can be guessed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

import orjson
from django.core.signing import BadSignature, Signer

from asyncpoll.contract import Problem
from tasks_app.api.responses import ProblemRaised, problem
from tasks_app.store import Claimed

_SALT = "asyncpoll.lease"
_SEPARATOR = "."


@dataclass(frozen=True, slots=True)
class Lease:
    """One attempt at one task, held under a claim."""

    task_id: UUID
    attempt: int
    claim: UUID


def claim_key(owner: str | None, queue: str, claim_id: str) -> UUID:
    """The id in the database of what `owner` calls `claim_id`. Nobody else's claim has it, whatever they call theirs."""
    name = orjson.dumps([owner, queue, claim_id])
    return UUID(bytes=hashlib.sha256(name).digest()[:16])


def lease_token(task: Claimed, claim: UUID) -> str:
    """The token for the attempt that `claim` holds: `attempt.claim.signature`, where the task is signed along."""
    signed = _signer().sign(f"{task.id.hex}{_SEPARATOR}{task.attempt}{_SEPARATOR}{claim.hex}")
    return signed.partition(_SEPARATOR)[2]


def read_token(task_id: UUID, token: str) -> Lease:
    """The lease that `token` is for. Raises ProblemRaised with 403 unless it was given out for `task_id`."""
    try:
        # Compares in constant time.
        text = _signer().unsign(f"{task_id.hex}{_SEPARATOR}{token}")
        _, attempt, claim = text.split(_SEPARATOR)
        return Lease(task_id, int(attempt), UUID(claim))
    except (BadSignature, ValueError):
        raise ProblemRaised(
            problem(
                Problem.FORBIDDEN,
                403,
                "This lease token was not given out for this task; send the one that came with the task when it was "
                "claimed.",
                parameter="lease_token",
            )
        ) from None


def _signer() -> Signer:
    return Signer(sep=_SEPARATOR, salt=_SALT)
