"""Where requests go and what they carry."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import httpx

from asyncpoll.client.encodings import ACCEPTED
from asyncpoll.client.errors import Misused
from asyncpoll.client.exchange import Request
from asyncpoll.client.redaction import hide_tickets
from asyncpoll.contract import API_VERSION, JSON_MEDIA_TYPE

# No cache between us and the server may answer for it, and nobody uses an encoding that we can't bound.
_ALWAYS: Final = {
    "Cache-Control": "no-cache",
    "Pragma": "no-cache",
    "Accept": JSON_MEDIA_TYPE,
    "Accept-Encoding": ACCEPTED,
}


@dataclass(frozen=True, slots=True)
class Address:
    """The server's API, or with an empty `base_url` a foreign endpoint that each request names in full."""

    base_url: str = ""
    token: str | None = field(default=None, repr=False)
    ticket: str | None = field(default=None, repr=False)

    def follows(self, http: httpx.Client | httpx.AsyncClient) -> bool:
        """Whether redirects are followed: never with a token, and at a foreign endpoint as its httpx client does."""
        return not self.base_url and http.follow_redirects

    def sent(self, request: Request) -> dict[str, Any]:
        """What `httpx` has to be told of a request."""
        query: list[tuple[str, Any]] = list(request.query)
        if self.ticket:
            query.append(("ticket", self.ticket))
        return {
            "method": request.method,
            "url": f"{self.base_url}{request.path}",
            "params": query or None,
            "headers": self._headers(request),
            "content": _content(request),
        }

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {**_ALWAYS, **dict(request.headers)}
        if self.base_url:
            headers["User-Agent"] = "asyncpoll"
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if request.body is not None:
            headers["Content-Type"] = JSON_MEDIA_TYPE
        return headers


def address(base_url: str, token: str | None, ticket: str | None) -> Address:
    """Where the API is: the URL itself, or its `/api/v1/` if it has no path. Raises Misused."""
    if any(mark in base_url for mark in "@?#"):
        raise Misused(
            "base_url has a user, a query or a fragment; leave them out, and give credentials as token=."
        )
    parts = _split(base_url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise Misused(
            f"base_url is {base_url!r}; give http://HOST or https://HOST, with the API's path if it is not /api/v1/."
        )
    if ticket is not None:
        hide_tickets()
    path = parts.path.rstrip("/") or f"/api/{API_VERSION}"
    return Address(
        f"{parts.scheme}://{parts.netloc}{path}/",
        _secret("token", token),
        _secret("ticket", ticket),
    )


def _split(url: str) -> SplitResult | None:
    """The parts of a URL; None if it is none to us or to httpx."""
    try:
        httpx.URL(url)
        return urlsplit(url)
    except (ValueError, httpx.InvalidURL):
        return None


def _content(request: Request) -> bytes | None:
    """The body as JSON. Raises Misused for what JSON can't say."""
    if request.body is None:
        return None
    try:
        return json.dumps(request.body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise Misused(f"The {request.kind} can't be sent as JSON: {error}") from error


def _secret(name: str, value: str | None) -> str | None:
    """A secret that fits into a header. The error never shows it."""
    if value is None or (value and value.isascii() and value.isprintable() and " " not in value):
        return value
    raise Misused(f"{name} is empty or has blanks or control characters; give it as it was issued.")
