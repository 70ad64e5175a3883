"""JSON answers and RFC 9457 problem documents."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from django.http import HttpResponse

from asyncpoll.contract import JSON_MEDIA_TYPE, PROBLEM_MEDIA_TYPE, Problem

_TITLES = {
    Problem.INVALID_PARAMETER: "A parameter breaks a rule",
    Problem.INVALID_BODY: "The body is not a valid request",
    Problem.BODY_TOO_LARGE: "The body is too large",
    Problem.UNSUPPORTED_MEDIA_TYPE: "The body must be JSON",
    Problem.UNKNOWN_TASK_TYPE: "No such task can be submitted",
    Problem.INVALID_ARGUMENTS: "The arguments do not fit the task",
    Problem.OUT_OF_BOUNDS: "More was asked for than the task allows",
    Problem.TASK_NOT_FOUND: "No such task",
    Problem.TASK_GONE: "The task was deleted",
    Problem.NOT_FOUND: "No such page",
    Problem.METHOD_NOT_ALLOWED: "Method not allowed",
    Problem.UNAUTHENTICATED: "Credentials are needed",
    Problem.FORBIDDEN: "These credentials do not allow it",
    Problem.TOO_MANY_REQUESTS: "Too many requests",
    Problem.OVERLOADED: "Too many requests are held",
    Problem.UNAVAILABLE: "The service is not available",
    Problem.INTERNAL: "Something went wrong here",
}
_SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class ProblemRaised(Exception):
    """Carries a problem document from inside a view to where it is answered."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status_code)
        self.response = response


def answer(payload: Any, status: int = HTTPStatus.OK, **headers: str) -> HttpResponse:
    """`payload` as JSON. Header names are given with underscores."""
    return _respond(payload, status, JSON_MEDIA_TYPE, headers)


def problem(
    kind: Problem,
    status: int,
    detail: str,
    *,
    parameter: str | None = None,
    **headers: str,
) -> HttpResponse:
    """A problem document. `detail` says what to do; `parameter` names what was wrong."""
    document: dict[str, Any] = {
        "type": kind.value,
        "title": _TITLES[kind],
        "status": int(status),
        "detail": detail,
    }
    if parameter is not None:
        document["parameter"] = parameter
    return _respond(document, status, PROBLEM_MEDIA_TYPE, headers)


def _respond(payload: Any, status: int, media_type: str, headers: dict[str, str]) -> HttpResponse:
    body = b"" if payload is None else orjson.dumps(payload, option=orjson.OPT_UTC_Z)
    response = HttpResponse(body, status=status, content_type=media_type)
    response.headers["Cache-Control"] = "no-store"
    response.headers["Content-Length"] = str(len(body))
    for name, value in _SECURITY_HEADERS.items():
        response.headers[name] = value
    for name, value in headers.items():
        response.headers[name.replace("_", "-")] = value
    return response
