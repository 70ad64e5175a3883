"""Where requests go and what they carry."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

import httpx

from asyncpoll.client.encodings import ACCEPTED
from asyncpoll.client.errors import Misused
from asyncpoll.client.exchange import Request
from asyncpoll.client.given import secret, shown
from asyncpoll.client.redaction import hide_tickets
from asyncpoll.contract import API_VERSION, JSON_MEDIA_TYPE

# No cache between us and the server may answer for it, and nobody uses an encoding that we can't bound.
_ALWAYS: Final = {
    "Cache-Control": "no-cache",
    "Pragma": "no-cache",
    "Accept": JSON_MEDIA_TYPE,
    "Accept-Encoding": ACCEPTED,
}
# The server's own bound, and how many with a ticket each fit into an address.
_MOST_TASKS, _MOST_TICKETS = 100, 40

Ticket: TypeAlias = str | Mapping[str, str] | None


@dataclass(frozen=True, slots=True)
class Address:
    """The server's API, or with an empty `base_url` a foreign endpoint that each request names in full."""

    base_url: str = ""
    token: str | None = field(default=None, repr=False)
    ticket: Ticket = field(default=None, repr=False)

    @property
    def most_tasks(self) -> int:
        """How many can be asked for at once."""
        return _MOST_TICKETS if isinstance(self.ticket, Mapping) else _MOST_TASKS

    def tickets_for(self, tasks: Collection[str]) -> list[str]:
        """What goes along with a request that reads these tasks: a ticket for each, or none and the token instead.

        Raises Misused where neither will do.
        """
        tickets = self.ticket
        if tickets is None or not tasks:
            return []
        if isinstance(tickets, str):
            return [_of_one(tickets, tasks)]
        if self.token and not any(task in tickets for task in tasks):
            return []
        return [_of_each(tickets, task) for task in tasks]

    def follows(self, http: httpx.Client | httpx.AsyncClient) -> bool:
        """Whether redirects are followed: never with a token, and at a foreign endpoint as its httpx client does."""
        return not self.base_url and http.follow_redirects

    def sent(self, request: Request) -> dict[str, Any]:
        """What `httpx` has to be told of a request."""
        query = [*request.query, *(("ticket", one) for one in self.tickets_for(request.tasks))]
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


def _of_one(ticket: str, tasks: Collection[str]) -> str:
    if len(tasks) > 1:
        raise Misused(
            f"ticket is that of one task, and {len(tasks)} are asked for; give each task's own: "
            "ticket={task_id: ticket, …}."
        )
    return ticket


def _of_each(tickets: Mapping[str, str], task: str) -> str:
    if task not in tickets:
        raise Misused(
            f"ticket has none for task {task}; add the poll_ticket that its submission was answered with."
        )
    return secret("ticket", tickets[task]) or ""


def address(base_url: str, token: str | None, ticket: Ticket) -> Address:
    """Where the API is: the URL itself, or its `/api/v1/` if it has no path. Raises Misused."""
    if any(mark in str(base_url) for mark in "@?#"):
        raise Misused(
            "base_url has a user, a query or a fragment; leave them out, and give credentials as token=."
        )
    parts = _split(base_url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise Misused(
            f"base_url is {shown(base_url)}; give http://HOST or https://HOST, with the API's path if it is not /api/v1/."
        )
    if ticket is not None:
        hide_tickets()
    path = parts.path.rstrip("/") or f"/api/{API_VERSION}"
    return Address(
        f"{parts.scheme}://{parts.netloc}{path}/",
        secret("token", token),
        ticket if isinstance(ticket, Mapping) else secret("ticket", ticket),
    )


def _split(url: Any) -> SplitResult | None:
    """The parts of a URL; None if it is none to us or to httpx."""
    if not isinstance(url, str):
        return None
    try:
        httpx.URL(url)
        parts = urlsplit(url)
        return parts if parts.port is None or parts.port > 0 else None
    except (ValueError, httpx.InvalidURL):
        return None


def _content(request: Request) -> bytes | None:
    """The body as JSON. Raises Misused for what JSON can't say."""
    if request.body is None:
        return None
    try:
        return json.dumps(request.body, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Misused(f"The {request.kind} can't be sent as JSON: {error}") from error
