"""Who asks: credentials, the project's own mapping, a poll ticket, or nobody."""

from __future__ import annotations

import inspect
import ipaddress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.core.signing import BadSignature, TimestampSigner
from django.http import HttpRequest
from django.utils.module_loading import import_string

from asyncpoll.contract import Problem
from tasks_app import conf
from tasks_app.api.query import values
from tasks_app.api.responses import ProblemRaised, problem

ALL_SCOPES = frozenset({"submit", "read", "cancel", "notify", "metrics"})
ANY_QUEUE = "claim:*"
"""Allows to claim from every queue."""
_TICKET_SALT = "asyncpoll.poll-ticket"
_FORWARDING_HEADERS = (
    "HTTP_FORWARDED",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_REAL_IP",
    "HTTP_VIA",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """On whose behalf a request acts. `owner` None sees every task; `only` narrows it to one."""

    owner: str | None
    scopes: frozenset[str] = ALL_SCOPES
    only: UUID | None = None


async def identify(request: HttpRequest) -> Identity:
    """The identity behind a request. Raises ProblemRaised with 401 where there is none."""
    tickets = values(request, "ticket")
    if tickets:
        return _from_ticket(tickets[-1])
    if "HTTP_AUTHORIZATION" not in request.META and _is_anonymous_allowed(request):
        return Identity(owner="", scopes=ALL_SCOPES | {ANY_QUEUE})
    identity = await _from_project(request)
    if identity is None:
        raise ProblemRaised(
            problem(
                Problem.UNAUTHENTICATED,
                401,
                "Send the credentials that this project's ASYNCPOLL['AUTHENTICATE'] asks for, or a poll ticket. Anonymous "
                "use is for development: it has to be switched on, with a loopback Host and no proxy in between.",
                WWW_Authenticate='Bearer realm="asyncpoll"',
            )
        )
    return identity


def require(identity: Identity, scope: str) -> None:
    """Raise ProblemRaised with 403 unless the identity has the scope."""
    any_queue = scope.startswith("claim:") and ANY_QUEUE in identity.scopes
    if scope not in identity.scopes and not any_queue:
        raise ProblemRaised(
            problem(
                Problem.FORBIDDEN,
                403,
                f"This needs the scope {scope!r}; these credentials have {sorted(identity.scopes)}.",
            )
        )


def poll_ticket(task_id: UUID) -> str:
    """A signed, expiring ticket that lets whoever holds it read this one task."""
    return TimestampSigner(salt=_TICKET_SALT).sign(task_id.hex)


def caller(request: HttpRequest, identity: Identity) -> str:
    """A name for rate limits: who it is, and from where."""
    return f"{identity.owner or ''}@{request.META.get('REMOTE_ADDR', '')}"


def _from_ticket(ticket: str) -> Identity:
    try:
        signed = TimestampSigner(salt=_TICKET_SALT).unsign(
            ticket, max_age=timedelta(seconds=conf.current().TICKET_SECONDS)
        )
        return Identity(owner=None, scopes=frozenset({"read"}), only=UUID(signed))
    except (BadSignature, ValueError):
        raise ProblemRaised(
            problem(
                Problem.UNAUTHENTICATED,
                401,
                "The ticket is not valid or has expired; get a new one from the backend that submitted the task.",
                parameter="ticket",
                WWW_Authenticate='Bearer realm="asyncpoll"',
            )
        ) from None


async def _from_project(request: HttpRequest) -> Identity | None:
    path = conf.current().AUTHENTICATE
    if not path:
        return None
    mapped: Any = _hook(path)(request)
    return await mapped if inspect.isawaitable(mapped) else mapped


@lru_cache(maxsize=4)
def _hook(path: str) -> Any:
    return import_string(path)


def _is_anonymous_allowed(request: HttpRequest) -> bool:
    return (
        conf.current().ANONYMOUS
        and _is_loopback(_host_name(request.META.get("HTTP_HOST", "")))
        and _is_loopback(request.META.get("REMOTE_ADDR", "localhost"))
        and not any(header in request.META for header in _FORWARDING_HEADERS)
    )


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


@lru_cache(maxsize=1024)
def _is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
