"""What goes between a conversation, which decides, and a driver, which does: steps one way, events the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

from asyncpoll.client.errors import AsyncpollError, StaleResponseError
from asyncpoll.client.redaction import without_user

# A server that closes an idle connection may do it just as the next request leaves, if it is this quick.
_DEAD_ON_REUSE_SECONDS: Final = 0.2

Stale: TypeAlias = Literal["raise", "retry"]
OnStale: TypeAlias = Stale | Callable[[StaleResponseError], Any]


@dataclass(frozen=True, slots=True)
class Request:
    """What to send. `kind` is a word for hooks; `path` is relative to the API, `tasks` are those that it reads."""

    kind: str
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: Mapping[str, Any] | None = None
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this and wait so long: for each part of the answer, and for the whole of it."""

    request: Request
    read_seconds: float
    total_seconds: float
    number: int
    delay_before: float
    on_new_connection: bool = False


@dataclass(frozen=True, slots=True)
class Sleep:
    """Do nothing for so long."""

    seconds: float


@dataclass(frozen=True, slots=True)
class News:
    """Tell the caller, oldest first."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """It is over; this is what was asked for."""

    value: Any


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It is over; raise this."""

    error: AsyncpollError


@dataclass(frozen=True, slots=True)
class Instead:
    """It is over; what was asked for is what the caller's own function makes of the error."""

    decide: Callable[[StaleResponseError], Any]
    error: StaleResponseError


Step: TypeAlias = Ask | Sleep | News | Done | GiveUp | Instead


class FailureKind(StrEnum):
    """How an exchange went wrong."""

    CUT = "cut"  # the connection ended before the answer began
    HALF = "half"  # the connection ended, or nonsense came, within the answer
    SILENT = "silent"  # nothing came for too long
    UNCONNECTED = "unconnected"  # no connection at all
    UNSENDABLE = "unsendable"  # no URL that can be asked
    REDIRECTED = "redirected"  # too often, or to where nothing can be asked
    UNTRUSTED = "untrusted"  # its certificate does not prove whom it is
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class Failure:
    """No whole answer. `reused`: on a connection that had carried a request before."""

    kind: FailureKind
    detail: str
    seconds: float
    reused: bool = False

    @property
    def died_on_reuse(self) -> bool:
        """True where a kept connection was closed just as the request left: no sign of trouble."""
        is_cut = self.kind is FailureKind.CUT and self.reused
        return is_cut and self.seconds < _DEAD_ON_REUSE_SECONDS


Event: TypeAlias = Reply | Failure | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request that was made, for hooks: without headers, and without user or ticket in its URL.

    `error` is what was wrong with its answer; `next_in` are the seconds until the next request, None after the last.
    """

    url: str
    number: int
    kind: str
    delay_before: float
    status: int | None
    seconds: float
    error: str | None = None
    method: str = "GET"
    next_in: float | None = None


def attempt(
    asked: Ask, event: Reply | Failure, base_url: str, error: str | None, next_in: float | None
) -> Attempt:
    """What hooks get of a request and what came of it."""
    query = "&".join(f"{name}={value}" for name, value in asked.request.query)
    return Attempt(
        url=f"{base_url}{without_user(asked.request.path)}" + (f"?{query}" if query else ""),
        number=asked.number,
        kind=asked.request.kind,
        delay_before=asked.delay_before,
        status=event.status if isinstance(event, Reply) else None,
        seconds=event.seconds,
        error=error,
        method=asked.request.method,
        next_in=next_in,
    )
