"""JSON answers and RFC 9457 problem documents."""

from __future__ import annotations

from functools import lru_cache
from http import HTTPStatus
from typing import Any

import orjson
from django.http import HttpResponse

from asyncpoll.contract import JSON_MEDIA_TYPE, PROBLEM_MEDIA_TYPE, Problem
from tasks_app.headers import security_headers
from tasks_app.prepared import PreparedResponse
from tasks_app.store.jsontext import clean_text


class ProblemRaised(Exception):
    """Carries a problem document from inside a view to where it is answered."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__(response.status_code)
        self.response = response


def answer(payload: Any, status: int = HTTPStatus.OK, **headers: str) -> HttpResponse:
    """`payload` as JSON. Header names are given with underscores."""
    return _respond(payload, status, JSON_MEDIA_TYPE, headers)


def prepared(payload: Any, etag: str) -> HttpResponse:
    """`answer(payload, ETag=etag)` for the many that are woken at once."""
    body = orjson.dumps(payload, option=orjson.OPT_UTC_Z)
    length = str(len(body)).encode()
    return PreparedResponse(
        body, (*_prepared_headers(), (b"Content-Length", length), (b"ETag", etag.encode()))
    )


def problem(
    kind: Problem,
    status: int,
    detail: str,
    *,
    parameter: str | None = None,
    **headers: str,
) -> HttpResponse:
    """A problem document. `detail` says what to do; `parameter` names what was wrong."""
    document = problem_document(kind, status, detail)
    if parameter is not None:
        document["parameter"] = parameter
    return _respond(document, status, PROBLEM_MEDIA_TYPE, headers)


def problem_document(kind: Problem, status: int, detail: str) -> dict[str, Any]:
    """The body of a problem."""
    return {
        "type": kind.value,
        "title": kind.summary,
        "status": int(status),
        # It may quote what came as JSON, in which lone surrogates can be written.
        "detail": clean_text(detail),
    }


def _respond(payload: Any, status: int, media_type: str, headers: dict[str, str]) -> HttpResponse:
    body = b"" if payload is None else orjson.dumps(payload, option=orjson.OPT_UTC_Z)
    response = HttpResponse(body, status=status, content_type=media_type)
    response.headers["Cache-Control"] = "no-store"
    if payload is None:
        # Of a 304, these would be said of what it does not send again.
        del response.headers["Content-Type"]
    else:
        response.headers["Content-Length"] = str(len(body))
    for name, value in security_headers().items():
        response.headers[name] = value
    for name, value in headers.items():
        response.headers[name.replace("_", "-")] = value
    return response


def _prepared_headers() -> tuple[tuple[bytes, bytes], ...]:
    return _encoded(tuple(security_headers().items()))


@lru_cache(maxsize=2)
def _encoded(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[bytes, bytes], ...]:
    all_headers = (("Content-Type", JSON_MEDIA_TYPE), ("Cache-Control", "no-store"), *headers)
    return tuple((name.encode(), value.encode()) for name, value in all_headers)
