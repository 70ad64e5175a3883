"""Pages of other origins: those in `CORS_ORIGINS` may call the API with a token or a ticket, and no other may.

There is nothing that a browser would add by itself, no cookie and no client certificate, so that credentials are never
allowed. The admin is not served here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http.response import HttpResponseBase

from tasks_app import conf
from tasks_app.prepared import PreparedResponse

_METHODS = "GET, HEAD, POST, OPTIONS"
_REQUEST_HEADERS = (
    "Authorization, Content-Type, If-None-Match, Prefer, Idempotency-Key, traceparent, tracestate"
)
_EXPOSED = "ETag, Location, Retry-After, Preference-Applied, Idempotent-Replayed, Link, WWW-Authenticate, Allow, Date"
# Browsers keep the answer to a preflight no longer than this or two hours, whichever is less.
_MAX_AGE_SECONDS = "7200"


def share(response: HttpResponseBase, scope: dict[str, Any]) -> None:
    """Let the page that asked read the answer, where its origin is listed."""
    added = sharing([value for name, value in scope["headers"] if name == b"origin"])
    if "Access-Control-Allow-Origin" in added and _asks_first(scope):
        added |= _preflight()
    if added:
        _add(response, added)


def sharing(given: Sequence[bytes]) -> dict[str, str]:
    """What an answer says to a page with these `Origin` headers; two of them are none of ours."""
    origins = conf.current().CORS_ORIGINS
    if not origins:
        return {}
    origin = given[0].decode("latin1") if len(given) == 1 else ""
    if origin not in origins:
        return {"Vary": "Origin"}
    return {
        "Vary": "Origin",
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": _EXPOSED,
    }


def _preflight() -> Mapping[str, str]:
    return {
        "Access-Control-Allow-Methods": _METHODS,
        "Access-Control-Allow-Headers": _REQUEST_HEADERS,
        "Access-Control-Max-Age": _MAX_AGE_SECONDS,
    }


def _add(response: HttpResponseBase, headers: Mapping[str, str]) -> None:
    if isinstance(response, PreparedResponse) and response.is_untouched:
        more = tuple((name.encode(), value.encode("latin1")) for name, value in headers.items())
        response.wire_headers = (*response.wire_headers, *more)
        return
    for name, value in headers.items():
        response.headers[name] = value


def _asks_first(scope: dict[str, Any]) -> bool:
    names = [name for name, _ in scope["headers"]]
    return scope["method"] == "OPTIONS" and b"access-control-request-method" in names
