"""Pages that keep up by long polls of their own: held the lean way, by whoever the admin lets in.

Such a view is asked with the session's cookie, as every page of the admin; the API never takes cookies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from django.core.handlers.asgi import ASGIRequest
from django.core.handlers.base import BaseHandler
from django.core.signals import setting_changed
from django.db import connections
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path

from asyncpoll.contract import Outcome
from tasks_app import conf
from tasks_app.errors import StoreUnavailable, TaskGone, TaskNotFound, TooManyHeld
from tasks_app.headers import security_headers
from tasks_app.hold.admission import Account
from tasks_app.hold.waiting import Wait, wait

MayLook = Callable[[HttpRequest], bool]
ACCOUNT: Final = Account("\x00admin")
"""Whom these holds count for: no owner can have that name."""
_LEAN = "asyncpoll"
_HOLD_SECONDS = 15.0
# Of a column that is a 32-bit integer.
_MOST_DIGITS = 10


def held_apart(namespace: str, *patterns: URLPattern) -> URLResolver:
    """Addresses whose views are held the lean way, among others of the admin."""
    return path("", include((list(patterns), _LEAN), namespace=namespace))


def version_in(text: str) -> int:
    """The version that a page says it shows; 0 for what can be none."""
    is_version = text.isascii() and text.isdecimal() and len(text) < _MOST_DIGITS
    return int(text) if is_version else 0


def can_hold(request: HttpRequest) -> bool:
    """Under WSGI each request would get an event loop, and a listener, of its own."""
    return isinstance(request, ASGIRequest)


def hold_seconds(most: float = _HOLD_SECONDS) -> float:
    """How long a page's poll is held, jitter and gateways allowed for by MAX_HOLD_SECONDS."""
    return min(most, conf.current().MAX_HOLD_SECONDS)


async def task_changed(task_id: UUID, known: int) -> dict[str, Any]:
    """Held until a task has another version than `known`, or is gone."""
    try:
        answer = await wait(Wait(task_id, known, hold_seconds(), None, ACCOUNT, route="admin"))
    except (TaskNotFound, TaskGone):
        return {"outcome": "GONE"}
    return {"outcome": answer.outcome, "after": str(answer.row.version)}


async def answered(
    request: HttpRequest, may_look: MayLook, look: Callable[[], Any]
) -> HttpResponse:
    """What `look` gives, as JSON, for those who may look; without a hold where there can be none."""
    if request.method != "GET":
        return _answer({}, 405)
    # In a thread for as long as it takes to look: a held request has neither a thread nor a connection.
    refusal = await asyncio.to_thread(_refusal, request, may_look)
    if refusal is not None:
        return refusal
    if not can_hold(request):
        return _answer({"outcome": Outcome.SHED})
    try:
        return _answer(await look())
    except (TooManyHeld, StoreUnavailable):
        return _answer({}, 503)


def _answer(facts: dict[str, Any], status: int = 200) -> HttpResponse:
    return JsonResponse(
        facts, status=status, headers={"Cache-Control": "no-store", **security_headers()}
    )


class _Gate(BaseHandler):
    """The project's own middleware, around the one question whether this user may look.

    Whatever says who somebody is, a single sign-on or a second factor, says it here as for every other page.
    """

    def _get_response(self, request: HttpRequest) -> HttpResponseBase:
        may_look: MayLook = request.asyncpoll_may_look  # type: ignore[attr-defined]
        return HttpResponse(status=204 if may_look(request) else 403)


@lru_cache(maxsize=1)
def _gate() -> _Gate:
    gate = _Gate()
    gate.load_middleware()
    return gate


def _refusal(request: HttpRequest, may_look: MayLook) -> HttpResponse | None:
    """Why not, or None. Closes what it opened: no request of Django's ends in this thread."""
    request.asyncpoll_may_look = may_look  # type: ignore[attr-defined]
    try:
        response = _gate().get_response(request)
    finally:
        connections.close_all()
    return None if response.status_code == 204 else _answer({}, 403)


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "MIDDLEWARE":
        _gate.cache_clear()


setting_changed.connect(_forget)
