"""The routes that hold: plain async views, which own nothing but memory while they wait."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from tasks_app.api.guard import api_view, parse_task_id
from tasks_app.api.identity import Identity
from tasks_app.api.limiting import Asking, limited
from tasks_app.api.preferences import (
    matches_any,
    preferred_wait,
    tagged_versions,
    wait_applied,
)
from tasks_app.api.query import hold_seconds, single
from tasks_app.api.representation import etag, hold_answer, replay_answer, task_resource
from tasks_app.api.responses import answer, prepared
from tasks_app.hold.replay import replay
from tasks_app.hold.shortpolls import Brought
from tasks_app.hold.waiting import Answer, Wait, wait
from tasks_app.hold.window import parse_flag, parse_version


@api_view("GET", "HEAD", scope="read")
async def long_poll(request: HttpRequest, task_id: str, identity: Identity) -> HttpResponse:
    """GET …/long_poll: answers once the version differs from `client_known_version`, or the hold runs out."""
    known = _known_version(request)
    asked = hold_seconds(request, "max_hold_seconds")
    identifier = parse_task_id(task_id, identity)
    held = await wait(Wait(identifier, known, asked, identity.owner, identity.account))
    return limited(request, identity, _asking(held, known)) or _hold_response(held)


@api_view("GET", "HEAD", scope="read")
async def status(request: HttpRequest, task_id: str, identity: Identity) -> HttpResponse:
    """GET …/status: with `wait=true`, answers once the task is over, or the hold runs out."""
    text = single(request, "wait")
    waits = text is not None and parse_flag(text, "wait")
    asked = hold_seconds(request, "timeout")
    held = await wait(
        Wait(
            parse_task_id(task_id, identity),
            known=0,
            asked_seconds=asked if waits else 0.0,
            owner=identity.owner,
            account=identity.account,
            until_terminal=True,
            route="status",
        )
    )
    return limited(request, identity, _asking(held, 0)) or _hold_response(held)


@api_view("GET", "HEAD", scope="read")
async def task(request: HttpRequest, task_id: str, identity: Identity) -> HttpResponse:
    """GET …/tasks/{id}: the task. With `Prefer: wait=N` and `If-None-Match`, held until it changes: 304 if it did not."""
    identifier = parse_task_id(task_id, identity)
    tagged = tagged_versions(request)
    # Of several versions, none can be waited for.
    known = next(iter(tagged)) if len(tagged) == 1 else 0
    preferred = preferred_wait(request)
    asked = preferred if known and preferred else 0.0
    held = await wait(
        Wait(identifier, known, asked, identity.owner, identity.account, route="task")
    )
    refusal = limited(request, identity, _asking(held, known))
    if refusal is not None:
        return refusal
    headers: dict[str, Any] = {"ETag": etag(held.row)}
    if preferred is not None:
        headers["Preference_Applied"] = wait_applied(held.window)
    if held.row.version in tagged or matches_any(request):
        return answer(None, 304, **headers)
    return answer(task_resource(held.row, held.result), **headers)


@api_view("GET", "HEAD", scope="read")
async def events(request: HttpRequest, task_id: str, identity: Identity) -> HttpResponse:
    """GET …/events: every version after `after`, held until there is one."""
    text = single(request, "after")
    after = 0 if text is None else parse_version(text, "after")
    asked = hold_seconds(request, "max_hold_seconds")
    identifier = parse_task_id(task_id, identity)
    told = await replay(
        Wait(identifier, after, asked, identity.owner, identity.account, route="events")
    )
    refusal = limited(request, identity, _asking(told.held, after))
    return refusal or prepared(replay_answer(told), etag(told.held.row))


def _hold_response(held: Answer) -> HttpResponse:
    return prepared(hold_answer(held), etag(held.row))


def _asking(held: Answer, known: int) -> Asking:
    brought = Brought(held.row.id, known, held.row.version)
    return Asking(held.window, held.outcome, held.cause, (brought,))


def _known_version(request: HttpRequest) -> int:
    text = single(request, "client_known_version")
    return 0 if text is None else parse_version(text, "client_known_version")
