"""Pages of other origins: those in `CORS_ORIGINS` may call the API with a token or a ticket, and no other may.

There is nothing that a browser would add by itself, no cookie and no client certificate, so that credentials are never
allowed. The admin is not served here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http.response import HttpResponseBase

from tasks_app import conf
from tasks_app.prepared import PreparedResponse

_METHODS = "GET, HEAD, POST, OPTIONS"
_REQUEST_HEADERS = (
    "Authorization, Content-Type, If-None-Match, Prefer, Idempotency-Key, traceparent, tracestate"
)
_EXPOSED = "ETag, Location, Retry-After, Preference-Applied, Idempotent-Replayed, Link, WWW-Authenticate, Allow"
# Browsers keep the answer to a preflight no longer than this or two hours, whichever is less.
_MAX_AGE_SECONDS = "7200"


def share(response: HttpResponseBase, scope: dict[str, Any]) -> None:
    """Let the page that asked read the answer, where its origin is listed."""
    origins = conf.current().CORS_ORIGINS
    if not origins:
        return
    origin = _header(scope, b"origin")
    added = {"Vary": "Origin"}
    if origin in origins:
        added |= {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": _EXPOSED}
        if scope["method"] == "OPTIONS" and _header(scope, b"access-control-request-method"):
            added |= _preflight()
    _add(response, added)


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


def _header(scope: dict[str, Any], name: bytes) -> str:
    """The header; two of them are none of ours."""
    found = [value for key, value in scope["headers"] if key == name]
    return found[0].decode("latin1") if len(found) == 1 else ""
