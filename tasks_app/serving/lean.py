"""Django's request cycle without what costs a thread for each request that is in flight.

Django's own handler enters a ThreadSensitiveContext and calls synchronous signal receivers in it, so that every held
request pins a thread. Here there is neither, and therefore no ORM: nothing would close its connections.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import Resolver404, ResolverMatch, get_resolver, set_script_prefix
from django.utils.module_loading import import_string

from tasks_app import conf
from tasks_app.events import emit
from tasks_app.prepared import PreparedResponse
from tasks_app.serving.body import BodyTooLarge, read_body
from tasks_app.serving.cors import share
from tasks_app.serving.presence import Presence
from tasks_app.serving.problems import (
    INTERNAL,
    TOO_SLOW,
    UNREADABLE,
    Refusal,
    body_too_large,
    refusal_of,
)
from tasks_app.serving.wiring import Drainable

APP_NAME = "asyncpoll"
"""The `app_name` of a urlconf whose views are served the lean way."""

# Their answers have no body, and some proxies take a Content-Length for the promise of one.
_BODILESS = frozenset({204, 304})


def lean_match(scope: dict[str, Any]) -> ResolverMatch | None:
    """The view for the path of `scope`, if it is to be served the lean way."""
    try:
        match = get_resolver().resolve(_path_info(scope))
    except Resolver404:
        return None
    return match if APP_NAME in match.app_names else None


def body_limit(path: str) -> int:
    """Most bytes accepted as the body of a request for `path`."""
    limits = conf.current()
    return limits.MAX_BODY_BYTES if is_lean(path) else limits.MAX_UPLOAD_BYTES


def is_lean(path: str) -> bool:
    """Is what is at `path` served the lean way?"""
    return lean_match({"path": path}) is not None


def _path_info(scope: dict[str, Any]) -> str:
    path: str = scope["path"]
    prefix = get_script_prefix(scope).rstrip("/")
    inside = prefix and (path == prefix or path.startswith(f"{prefix}/"))
    return path[len(prefix) :] if inside else path


class LeanHandler(ASGIHandler):
    """Answers requests whose view is known, with one task and no thread each.

    A synchronous view is called all the same, in the one thread that all of them share.
    """

    middleware: tuple[str, ...] = ()
    """Dotted paths of middleware that is async throughout, the outermost first."""

    def __init__(self, drain: Drainable) -> None:
        super().__init__()
        self._drain = drain

    def load_middleware(self, is_async: bool = True) -> None:
        """Wrap the call of the view in `middleware`, and in nothing that settings list."""
        chain: Any = _call_view
        for path in reversed(self.middleware):
            chain = import_string(path)(chain)
        self._middleware_chain = chain

    async def answer(
        self, match: ResolverMatch, scope: dict[str, Any], receive: Any, send: Any
    ) -> None:
        """Read the request, call the view of `match`, and send what it returns."""
        try:
            request = await self._read_request(scope, receive)
        except RequestAborted:
            return
        if isinstance(request, Refusal):
            await self._send(request.response(), scope, send)
            return
        request.resolver_match = match
        match.tried = None  # for debug pages; held requests need not keep it
        with Presence(receive):
            response = await self._respond(request)
            try:
                await self._send(response, scope, send)
            finally:
                request.close()
                _close(response)

    async def _read_request(self, scope: dict[str, Any], receive: Any) -> HttpRequest | Refusal:
        limit = conf.current().MAX_BODY_BYTES
        try:
            body = await read_body(scope, receive, limit)
            if prefix := get_script_prefix(scope):
                set_script_prefix(prefix)
            return self.request_class(scope, body)
        except BodyTooLarge:
            return body_too_large(limit)
        except TimeoutError:
            return TOO_SLOW
        except UnicodeDecodeError:
            return UNREADABLE

    async def _send(self, response: HttpResponseBase, scope: dict[str, Any], send: Any) -> None:
        share(response, scope)
        # HTTP/2 has no such header.
        if (
            isinstance(response, PreparedResponse)
            and response.is_untouched
            and not self._drain.draining
        ):
            await _send_prepared(response, send)
            return
        if self._drain.draining and scope.get("http_version", "1.1").startswith("1"):
            response.headers["Connection"] = "close"
        await self.send_response(response, send)

    async def _respond(self, request: HttpRequest) -> HttpResponseBase:
        try:
            response = await self._middleware_chain(request)
            self.check_response(response, _call_view)
        except Exception as error:
            # Whatever a view raises is answered, as Django itself does it.
            refusal = refusal_of(error)
            if refusal is None:
                # A log handler may send mail, and must not stop everybody's requests for that.
                await asyncio.to_thread(emit, "request.failed", request=request, error=error)
            response = (refusal or INTERNAL).response()
        if isinstance(response, PreparedResponse) and response.is_untouched:
            return response
        if isinstance(response, HttpResponse) and response.status_code not in _BODILESS:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return response


async def _send_prepared(response: PreparedResponse, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": response.wire_headers})
    await send({"type": "http.response.body", "body": response.body})


@markcoroutinefunction
def _call_view(request: HttpRequest) -> Awaitable[HttpResponseBase]:
    """Start the view. Not a coroutine itself, which would be one more for each held request."""
    assert request.resolver_match is not None
    view, args, kwargs = request.resolver_match
    call = view if iscoroutinefunction(view) else sync_to_async(view, thread_sensitive=True)
    return call(request, *args, **kwargs)


def _close(response: HttpResponseBase) -> None:
    """What `response.close()` does, without its signal, whose receivers are synchronous."""
    if isinstance(response, PreparedResponse) and response.is_untouched:
        return
    for closer in response._resource_closers:  # type: ignore[attr-defined]
        with suppress(Exception):
            closer()
