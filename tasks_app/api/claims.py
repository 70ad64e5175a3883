"""POST …/queues/{queue}/claim: executors outside this code base take work, held until there is some."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any
from uuid import UUID

import orjson
from django.http import HttpRequest, HttpResponse
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from asyncpoll.contract import ClaimOutcome, Outcome
from tasks_app import conf
from tasks_app.api.bodies import read_json
from tasks_app.api.guard import api_view
from tasks_app.api.identity import Identity, caller, confirm
from tasks_app.api.leases import claim_key, lease_token
from tasks_app.api.numbers import WholeNumber
from tasks_app.api.responses import answer
from tasks_app.errors import BadParameter
from tasks_app.hold.claiming import ClaimAnswer, ClaimAsked, claim
from tasks_app.hold.window import backoff_ms
from tasks_app.limits import MAX_NAME_LENGTH
from tasks_app.store import Leased
from tasks_app.tokens import CLAIM

MOST_TASKS = 100
_BACKOFFS = {
    ClaimOutcome.EMPTY: Outcome.STILL_RUNNING,
    ClaimOutcome.DRAINING: Outcome.DRAINING,
    ClaimOutcome.SHED: Outcome.SHED,
}


class ClaimBody(BaseModel):
    """What an executor sends."""

    model_config = ConfigDict(extra="forbid")

    claim_id: StrictStr = Field(min_length=1, max_length=255)
    limit: WholeNumber = Field(default=1, ge=1, le=MOST_TASKS)
    max_hold_seconds: Annotated[float, Field(strict=True, ge=0)] | None = None


@api_view("POST", scope="claim:{queue}")
async def claim_tasks(request: HttpRequest, queue: str, identity: Identity) -> HttpResponse:
    """Take up to `limit` tasks. The same `claim_id` again gives the same tasks again, with the same tokens."""
    _check_queue(queue)
    body = read_json(request, ClaimBody)
    hold = body.max_hold_seconds
    asked = ClaimAsked(
        claim=claim_key(identity.owner, queue, body.claim_id),
        queue=queue,
        limit=body.limit,
        asked_seconds=conf.current().MAX_HOLD_SECONDS if hold is None else hold,
        owner=identity.owner,
        caller=caller(request, identity),
        confirm=partial(confirm, identity, f"{CLAIM}{queue}"),
    )
    return answer(_claim_answer(body.claim_id, asked, await claim(asked)))


def _check_queue(queue: str) -> None:
    if len(queue) > MAX_NAME_LENGTH or not queue.isprintable():
        raise BadParameter(
            "queue", queue, f"must be at most {MAX_NAME_LENGTH} printable characters"
        )


def _claim_answer(claim_id: str, asked: ClaimAsked, given: ClaimAnswer) -> dict[str, Any]:
    return {
        "claim_id": claim_id,
        "queue": asked.queue,
        "outcome": given.outcome,
        "repeated": given.taken.repeated,
        "tasks": [_leased_task(task, asked.claim) for task in given.taken.tasks],
        "recommended_client_backoff_ms": _backoff_ms(given),
        "hold_duration_ms": round(given.held_seconds * 1000, 1),
        "hold_granted_ms": given.window.granted_ms,
        "client_read_timeout_ms": given.window.client_read_timeout_ms,
    }


def _leased_task(leased: Leased, claim: UUID) -> dict[str, Any]:
    task = leased.task
    return {
        "task_id": task.id,
        "task": task.name,
        "queue": task.queue,
        "owner": task.owner,
        "args": orjson.Fragment(task.args),
        "kwargs": orjson.Fragment(task.kwargs),
        "attempt": task.attempt,
        "max_attempts": task.max_attempts,
        "version": task.version,
        "cancel_requested": task.cancel_requested,
        "trace_context": None
        if task.trace_context is None
        else orjson.Fragment(task.trace_context),
        "lease_token": lease_token(task, claim),
        "lease_seconds": min(conf.current().LEASE_SECONDS, task.timeout_seconds),
        "lease_expires_at": leased.lease_expires_at,
        "deadline": leased.deadline,
    }


def _backoff_ms(given: ClaimAnswer) -> int:
    if given.taken.tasks:
        return 0
    # A claim once more whose tasks are all over was answered at once; asked again at once, it would spin.
    return backoff_ms(
        _BACKOFFS.get(given.outcome, Outcome.STILL_RUNNING),
        0.0 if given.taken.repeated else given.window.granted_seconds,
    )
