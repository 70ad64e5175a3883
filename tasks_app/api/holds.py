"""The routes that hold: plain async views, which own nothing but memory while they wait."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse

from asyncpoll.contract import Outcome, Problem
from tasks_app import conf
from tasks_app.api.guard import api_view, parse_task_id
from tasks_app.api.identity import Identity, caller
from tasks_app.api.preferences import (
    matches_any,
    preferred_wait,
    tagged_versions,
    wait_applied,
)
from tasks_app.api.query import single
from tasks_app.api.representation import etag, hold_answer, task_resource
from tasks_app.api.responses import answer, prepared, problem
from tasks_app.hold.shortpolls import short_polls
from tasks_app.hold.waiting import Answer, Wait, wait
from tasks_app.hold.window import parse_flag, parse_seconds, parse_version
from tasks_app.wakeup.reader import Cause

# A shorter hold is short polling by another name.
_HOLD_SECONDS = 0.2


@api_view("GET", "HEAD", scope="read")
async def long_poll(request: HttpRequest, task_id: str, identity: Identity) -> HttpResponse:
    """GET …/long_poll: answers once the version differs from `client_known_version`, or the hold runs out."""
    known = _known_version(request)
    asked = _seconds(request, "max_hold_seconds")
    held = await wait(Wait(parse_task_id(task_id, identity), known, asked, identity.owner))
    return _limited(request, identity, held, known) or _hold_response(held)


@api_view("GET", "HEAD", scope="read")
async def status(request: HttpRequest, task_id: str, identity: Identity) -> HttpResponse:
    """GET …/status: with `wait=true`, answers once the task is over, or the hold runs out."""
    text = single(request, "wait")
    waits = text is not None and parse_flag(text, "wait")
    asked = _seconds(request, "timeout")
    held = await wait(
        Wait(
            parse_task_id(task_id, identity),
            known=0,
            asked_seconds=asked if waits else 0.0,
            owner=identity.owner,
            until_terminal=True,
        )
    )
    return _limited(request, identity, held, 0) or _hold_response(held)


@api_view("GET", "HEAD", scope="read")
async def task(request: HttpRequest, task_id: str, identity: Identity) -> HttpResponse:
    """GET …/tasks/{id}: the task. With `Prefer: wait=N` and `If-None-Match`, held until it changes: 304 if it did not."""
    identifier = parse_task_id(task_id, identity)
    tagged = tagged_versions(request)
    # Of several versions, none can be waited for.
    known = next(iter(tagged)) if len(tagged) == 1 else 0
    preferred = preferred_wait(request)
    asked = preferred if known and preferred else 0.0
    held = await wait(Wait(identifier, known, asked, identity.owner))
    limited = _limited(request, identity, held, known)
    if limited is not None:
        return limited
    headers: dict[str, Any] = {"ETag": etag(held.row)}
    if preferred is not None:
        headers["Preference_Applied"] = wait_applied(held.window)
    if held.row.version in tagged or matches_any(request):
        return answer(None, 304, **headers)
    return answer(task_resource(held.row, held.result), **headers)


def _hold_response(held: Answer) -> HttpResponse:
    return prepared(hold_answer(held), etag(held.row))


def _limited(
    request: HttpRequest, identity: Identity, held: Answer, known: int
) -> HttpResponse | None:
    """429 for a caller that is answered at once too often without having learned anything."""
    was_held = held.window.granted_seconds >= _HOLD_SECONDS and held.cause is not Cause.FIRST
    if was_held or held.outcome in (Outcome.DRAINING, Outcome.SHED):
        return None
    if short_polls.allows(held.row.id, caller(request, identity), held.row.version, known):
        return None
    return problem(
        Problem.TOO_MANY_REQUESTS,
        429,
        f"More than {conf.current().MAX_SHORT_POLLS_PER_SECOND} immediate answers a second for this task; hold the "
        "request instead: send the last answer's version as client_known_version, with max_hold_seconds=25.",
        Retry_After="1",
    )


def _known_version(request: HttpRequest) -> int:
    text = single(request, "client_known_version")
    return 0 if text is None else parse_version(text, "client_known_version")


def _seconds(request: HttpRequest, name: str) -> float:
    """The hold asked for. HEAD never holds."""
    text = single(request, name)
    seconds = conf.current().MAX_HOLD_SECONDS if text is None else parse_seconds(text, name)
    return 0.0 if request.method == "HEAD" else seconds
