"""The message centre: POST …/tasks/{id}/notify leaves a claim check, GET …/inbox and POST …/inbox/{id}/ack empty it."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from asyncpoll.contract import Problem
from tasks_app import conf
from tasks_app.api.bodies import read_json
from tasks_app.api.guard import api_view, parse_task_id
from tasks_app.api.identity import Identity
from tasks_app.api.limiting import Asking, limited
from tasks_app.api.notices import NotifyBody
from tasks_app.api.notifying import Asked, asked_for, leave_check
from tasks_app.api.query import hold_seconds
from tasks_app.api.representation import add_hold
from tasks_app.api.responses import answer, problem
from tasks_app.errors import BadParameter, TaskNotFound
from tasks_app.hold.inbox import InboxAnswer, wait_for_inbox
from tasks_app.hold.shortpolls import Brought
from tasks_app.limits import parse_id
from tasks_app.owned import owned
from tasks_app.store import Entry, Promised, acknowledge, lock_task
from tasks_app.store.pool import loop_pool
from tasks_app.wakeup.reader import Cause
from tasks_app.webhooks.payload import ended_task
from tasks_app.webhooks.targets import INBOX


@api_view("POST", scope="notify")
async def notify_task(request: HttpRequest, task_id: str, identity: Identity) -> HttpResponse:
    """Have the end of a task told, also if it is over. Asking again changes nothing."""
    identifier = parse_task_id(task_id, identity)
    notice = read_json(request, NotifyBody).root
    asked = await asked_for(notice, identity.owner)
    promised = await owned(_leave(identifier, identity.owner, asked))
    return answer(
        {
            "delivery_id": promised.id,
            "task_id": identifier,
            "inbox": asked.target == INBOX,
            "webhook": asked.target.address or None,
            "state": promised.state,
        },
        202,
    )


@api_view("GET", "HEAD", scope="notify")
async def inbox(request: HttpRequest, identity: Identity) -> HttpResponse:
    """The oldest entries, held while there are none. There is no cursor: what is not acknowledged comes again."""
    owner = identity.owner or ""
    held = await wait_for_inbox(owner, identity.account, hold_seconds(request, "max_hold_seconds"))
    cause = Cause.FIRST if held.at_once else Cause.HINT
    asking = Asking(held.window, held.outcome, cause, [Brought(_id_of(owner), 0, 1)])
    return limited(request, identity, asking, _refusal) or answer(_inbox_answer(held))


@api_view("POST", scope="notify")
async def acknowledge_entry(
    request: HttpRequest, entry_id: str, identity: Identity
) -> HttpResponse:
    """Take an entry off the list. Asking again changes nothing."""
    identifier = _entry_id(entry_id)
    at = await owned(_acknowledge(identifier, identity.owner or ""))
    if at is None:
        return problem(
            Problem.ENTRY_NOT_FOUND,
            404,
            f"There is no entry {identifier} in this inbox; use the id of one that GET …/inbox lists.",
        )
    return answer({"id": identifier, "acknowledged_at": at})


async def _leave(task_id: UUID, owner: str | None, asked: Asked) -> Promised:
    async with (await loop_pool()).transaction() as transaction:
        its_owner = await transaction.run(lock_task(task_id, owner))
        if its_owner is None:
            raise TaskNotFound(task_id)
        return await leave_check(transaction, task_id, its_owner, asked)


async def _acknowledge(entry_id: UUID, owner: str) -> Any:
    return await (await loop_pool()).run(acknowledge(entry_id, owner))


def _entry_id(text: str) -> UUID:
    try:
        return parse_id(text)
    except ValueError:
        raise BadParameter(
            "entry_id", text, "must be an entry's id: a UUID, written as the inbox lists it"
        ) from None


def _inbox_answer(held: InboxAnswer) -> dict[str, Any]:
    body: dict[str, Any] = {
        "entries": [_entry(entry) for entry in held.entries],
        "has_more": held.has_more,
        "outcome": held.outcome,
    }
    add_hold(body, held)
    return body


def _entry(entry: Entry) -> dict[str, Any]:
    return {"id": entry.id, **ended_task(entry.ended), "delivered_at": entry.delivered_at}


def _id_of(owner: str) -> UUID:
    """What limits call the inbox of `owner`."""
    return UUID(bytes=hashlib.sha256(f"inbox of {owner}".encode()).digest()[:16])


def _refusal() -> HttpResponse:
    return problem(
        Problem.TOO_MANY_REQUESTS,
        429,
        f"More than {conf.current().MAX_SHORT_POLLS_PER_SECOND} immediate answers a second for this inbox; acknowledge "
        "what it lists, and hold the request with max_hold_seconds=25.",
        Retry_After="1",
    )
