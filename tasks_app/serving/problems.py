"""Problem documents that serving itself answers with, before a view is called or when one has failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType

from django.core.exceptions import (
    BadRequest,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.http import Http404, HttpResponse

from asyncpoll.contract import PROBLEM_MEDIA_TYPE, Problem
from tasks_app.headers import security_headers


@dataclass(frozen=True, slots=True)
class Refusal:
    """An RFC 9457 problem document. `closes` ends the connection after the answer; `retry_after` is in seconds."""

    status: int
    type: str
    detail: str
    closes: bool = False
    retry_after: int | None = None

    @property
    def document(self) -> bytes:
        """The body, as JSON."""
        fields = {
            "type": str(self.type),
            "title": self.type.summary
            if isinstance(self.type, Problem)
            else HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        return json.dumps(fields).encode()

    def response(self) -> HttpResponse:
        """The answer, for a Django handler to send."""
        body = self.document
        headers = {
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            **security_headers(),
            **self._retrying(),
        }
        if self.closes:
            headers["Connection"] = "close"
        return HttpResponse(
            body, status=self.status, content_type=PROBLEM_MEDIA_TYPE, headers=headers
        )

    def _retrying(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}

    def message(self, more: Mapping[str, str] = MappingProxyType({})) -> bytes:
        """The whole HTTP/1.1 answer with `more` headers, for a connection whose request is not read to its end."""
        body = self.document
        headers = {**security_headers(), **self._retrying(), **more}
        others = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = (
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n"
            f"Content-Type: {PROBLEM_MEDIA_TYPE}\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\n"
            f"{others}"
            "Connection: close\r\n\r\n"
        )
        return head.encode() + body


TOO_SLOW = Refusal(
    408,
    "about:blank",
    "The request did not arrive in time; send its headers and body without pausing.",
    closes=True,
)
MALFORMED = Refusal(
    400,
    "about:blank",
    "This is not a valid HTTP/1.1 request; check its request line, headers and transfer encoding.",
    closes=True,
)
HEAD_TOO_LONG = Refusal(
    431,
    "about:blank",
    "The request line or a header is longer than 16 KiB; shorten it.",
    closes=True,
)
GOING_AWAY = Refusal(
    503,
    Problem.UNAVAILABLE,
    "This server is going away before it could answer; send the request again.",
    closes=True,
    retry_after=2,
)
UNREADABLE = Refusal(
    400,
    Problem.INVALID_PARAMETER,
    "The query is not UTF-8; percent-encode the UTF-8 bytes of its values.",
)
INTERNAL = Refusal(
    500,
    Problem.INTERNAL,
    "The server failed to answer; the error is in its log. Trying again may help.",
)


def body_too_large(limit: int) -> Refusal:
    """The answer to a body of more than `limit` bytes."""
    return Refusal(
        413,
        Problem.BODY_TOO_LARGE,
        f"The body is larger than the {limit} bytes that this server accepts; send less.",
        closes=True,
    )


def refusal_of(error: Exception) -> Refusal | None:
    """What Django means by the exceptions that a view may raise to refuse a request; None for a failure."""
    match error:
        case Http404():
            return Refusal(404, Problem.NOT_FOUND, str(error) or "There is nothing here.")
        case PermissionDenied():
            return Refusal(403, Problem.FORBIDDEN, str(error) or "This is not allowed.")
        case RequestDataTooBig():
            return Refusal(413, Problem.BODY_TOO_LARGE, str(error), closes=True)
        case SuspiciousOperation() | BadRequest():
            return Refusal(400, Problem.INVALID_PARAMETER, str(error) or "The request is invalid.")
    return None
