"""Who asks: a poll ticket, credentials, the project's own mapping, or nobody."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Protocol
from uuid import UUID

from django.http import HttpRequest
from django.utils.module_loading import import_string

from asyncpoll.contract import Problem
from tasks_app import conf
from tasks_app.api.anonymous import is_anonymous_allowed
from tasks_app.api.bearer import Bearer, read_bearer
from tasks_app.api.query import values
from tasks_app.api.responses import ProblemRaised, problem
from tasks_app.api.sources import source_of
from tasks_app.api.tickets import Ticket, poll_ticket, read_ticket
from tasks_app.hold.admission import Account
from tasks_app.redaction import without_ticket
from tasks_app.tokens import ALL_SCOPES, ANY_QUEUE, CLAIM

__all__ = [
    "ALL_SCOPES",
    "ANY_QUEUE",
    "Identity",
    "caller",
    "confirm",
    "identify",
    "poll_ticket",
    "refuse_ticket",
    "require",
]

_SHOWN_CHARACTERS = 60
# What a project said so short a time ago still holds; a request that was not held does not ask twice.
_FRESH_SECONDS = 1.0


class Standing(Protocol):
    """Why an identity was given, and whether that is still so."""

    def holds(self) -> bool:
        """False when it has to be looked at again. Costs nothing."""

    async def renew(self) -> Identity | None:
        """The identity as it is now; None if there is none any more."""


@dataclass(frozen=True, slots=True)
class Identity:
    """On whose behalf a request acts. `owner` None sees every task; `only` narrows it to some.

    Who has no owner counts among a `crowd` when it is held: by default among all for whom none was named.
    """

    owner: str | None
    scopes: frozenset[str] = ALL_SCOPES
    only: frozenset[UUID] | None = None
    standing: Standing | None = field(default=None, compare=False, repr=False)
    crowd: str = ""

    @property
    def account(self) -> Account:
        """Whose place it takes when it is held."""
        if self.owner is not None:
            return Account(self.owner)
        return Account(self.crowd, is_crowd=True)

    def may_see(self, task_id: UUID) -> bool:
        """False for a task that is none of those it is narrowed to, there or not."""
        return self.only is None or task_id in self.only


async def identify(request: HttpRequest, most_tickets: int = 1) -> Identity:
    """The identity behind a request, which may bring so many tickets. Raises ProblemRaised with 401 where there is none."""
    tickets = values(request, "ticket")
    if tickets:
        _hide_ticket(request)
        return _from_tickets(tickets, most_tickets)
    bearer = await read_bearer(request)
    if bearer is not None:
        return _from_bearer(bearer)
    if "HTTP_AUTHORIZATION" not in request.META and is_anonymous_allowed(request):
        return _ANYBODY
    identity = await _from_project(request)
    if identity is None:
        raise ProblemRaised(unauthenticated(_what_to_send(request)))
    return identity


def _what_to_send(request: HttpRequest) -> str:
    sent = request.META.get("HTTP_AUTHORIZATION", "").lower()
    if conf.current().AUTHENTICATE and sent and not sent.startswith("bearer ap_"):
        return (
            "What came as Authorization is not known: this project's own authentication takes it for nobody's, and it is no "
            "token of manage.py createtoken either."
        )
    if sent.startswith("bearer"):
        return (
            "What came as Authorization: Bearer is no token: one begins with ap_ and has 59 characters, as manage.py "
            "createtoken prints it. Send it whole, once, and nothing else."
        )
    return (
        "Send a token as Authorization: Bearer ap_…, a poll ticket as ?ticket=…, or the credentials that this project "
        "maps to owners. Use without any is for development: it has to be switched on, with a loopback Host and no proxy "
        "in between."
    )


async def confirm(identity: Identity, scope: str) -> None:
    """Before what a request waited for leaves: may it still have it? Raises ProblemRaised with 401 or 403."""
    standing = identity.standing
    if standing is None or standing.holds():
        return
    now = await standing.renew()
    if now is None or (now.owner, now.only) != (identity.owner, identity.only):
        raise ProblemRaised(
            unauthenticated("The credentials ended while this request was held; send others.")
        )
    require(now, scope)


def require(identity: Identity, scope: str) -> None:
    """Raise ProblemRaised with 403 unless the identity has the scope."""
    any_queue = scope.startswith(CLAIM) and ANY_QUEUE in identity.scopes
    if scope not in identity.scopes and not any_queue:
        shown, has = scope[:_SHOWN_CHARACTERS], sorted(identity.scopes)
        raise ProblemRaised(
            problem(
                Problem.FORBIDDEN,
                403,
                f"This needs the scope {shown!r}; these credentials have {', '.join(has) or 'none'}. Use credentials that "
                f"have it, for example a token of manage.py createtoken --scopes {','.join([*has, shown])}",
            )
        )


def refuse_ticket(identity: Identity) -> None:
    """Raise ProblemRaised with 403 for what is about more than one task."""
    if identity.only is not None:
        raise ProblemRaised(
            problem(
                Problem.FORBIDDEN,
                403,
                "A poll ticket reads its one task; send credentials that may see others.",
                parameter="ticket",
            )
        )


def unauthenticated(detail: str, parameter: str | None = None) -> Any:
    """401, with what to send instead."""
    return problem(
        Problem.UNAUTHENTICATED,
        401,
        detail,
        parameter=parameter,
        WWW_Authenticate='Bearer realm="asyncpoll"',
    )


def caller(request: HttpRequest, identity: Identity) -> str:
    """A name for rate limits: who it is, and from where."""
    return f"{identity.owner or ''}@{source_of(request)}"


class _Always:
    """Nothing that could end."""

    def holds(self) -> bool:
        return True

    async def renew(self) -> Identity | None:
        return _ANYBODY


_ANYBODY = Identity(owner="", scopes=ALL_SCOPES | {ANY_QUEUE}, standing=_Always())


class _TicketStanding:
    __slots__ = ("_expires_at",)

    def __init__(self, expires_at: float) -> None:
        self._expires_at = expires_at

    def holds(self) -> bool:
        return time.time() < self._expires_at

    async def renew(self) -> Identity | None:
        return None


def _hide_ticket(request: HttpRequest) -> None:
    """It was read; from now on it is for nobody to print."""
    query = request.META["QUERY_STRING"] = without_ticket(request.META["QUERY_STRING"])
    if (scope := getattr(request, "scope", None)) is not None:
        scope["query_string"] = query.encode("latin1", "replace")


def _from_tickets(given: list[str], most: int) -> Identity:
    """One of several that is not valid opens nothing, and takes nothing from the others."""
    tickets = _valid(given) if len(given) <= most else []
    if not tickets:
        raise ProblemRaised(
            unauthenticated(
                "The ticket is not valid or has expired; get a new one from the backend that submitted the task.",
                parameter="ticket",
            )
        )
    only = frozenset(ticket.task_id for ticket in tickets)
    standing = _TicketStanding(min(ticket.expires_at for ticket in tickets))
    return Identity(None, frozenset({"read"}), only, standing, min(each.crowd for each in tickets))


def _valid(given: list[str]) -> list[Ticket]:
    return [ticket for ticket in map(read_ticket, given) if ticket is not None]


class _TokenStanding:
    __slots__ = ("_bearer",)

    def __init__(self, bearer: Bearer) -> None:
        self._bearer = bearer

    def holds(self) -> bool:
        return self._bearer.holds()

    async def renew(self) -> Identity | None:
        await self._bearer.look()
        return _of_bearer(self._bearer)


def _from_bearer(bearer: Bearer) -> Identity:
    identity = _of_bearer(bearer)
    if identity is None:
        raise ProblemRaised(
            unauthenticated(
                "The token is unknown, has expired, or was revoked; ask its owner for another."
            )
        )
    return identity


def _of_bearer(bearer: Bearer) -> Identity | None:
    facts = bearer.facts()
    if facts is None:
        return None
    return Identity(facts.owner, facts.scopes, None, _TokenStanding(bearer))


class _ProjectStanding:
    __slots__ = ("_asked_at", "_request")

    def __init__(self, request: HttpRequest) -> None:
        self._request, self._asked_at = request, time.monotonic()

    def holds(self) -> bool:
        return time.monotonic() - self._asked_at < _FRESH_SECONDS

    async def renew(self) -> Identity | None:
        return await _from_project(self._request)


async def _from_project(request: HttpRequest) -> Identity | None:
    hook = _hook(conf.current().AUTHENTICATE)
    if hook is None:
        return None
    mapped = hook(request)
    identity = await mapped if inspect.isawaitable(mapped) else mapped
    if identity is None:
        return None
    if not isinstance(identity, Identity):
        raise TypeError(
            f"ASYNCPOLL['AUTHENTICATE'] gave a {type(identity).__name__}; it returns an Identity, or None for nobody."
        )
    return replace(identity, standing=_ProjectStanding(request))


Hook = Callable[[HttpRequest], Identity | Awaitable[Identity | None] | None]


@lru_cache(maxsize=4)
def _hook(named: str | Hook) -> Hook | None:
    if not isinstance(named, str):
        return named
    return import_string(named) if named else None
