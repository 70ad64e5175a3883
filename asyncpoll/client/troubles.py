"""What is wrong with an answer, or with there being none; whether it may pass. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from asyncpoll.client.documents import problem_in
from asyncpoll.client.errors import (
    AsyncpollError,
    Misused,
    Redirected,
    Refused,
    ResponseTooLarge,
    TaskGone,
    TaskNotFound,
    Unreachable,
)
from asyncpoll.client.exchange import Failure, FailureKind, Reply
from asyncpoll.client.pauses import retry_after
from asyncpoll.client.redaction import brief, place
from asyncpoll.contract import Problem

_BUSY: Final = frozenset({429, 503})
_PASSING: Final = frozenset({408, 425})
_FOUND: Final = 302
_MISSING: Final = frozenset({404, 405})


class Kind(StrEnum):
    """What follows from a trouble."""

    BUSY = "busy"  # the server is there and wants to be asked later
    ERROR = "error"  # may pass
    FINAL = "final"  # will not


@dataclass(frozen=True, slots=True)
class Trouble:
    """`reason` is for hooks and messages, `error` what a final one raises."""

    kind: Kind
    reason: str
    error: AsyncpollError | None = None
    retry_after: float | None = None


def final(error: AsyncpollError) -> Trouble:
    """A trouble that does not pass."""
    return Trouble(Kind.FINAL, str(error), error)


def trouble_with(
    event: Reply | Failure, what: str, *, ours: bool, had_answer: bool
) -> Trouble | None:
    """The trouble, or None with a 2xx. `what` was asked; `ours` if asyncpoll should answer; `had_answer` if it has."""
    if isinstance(event, Failure):
        return _failure(event, what)
    if 200 <= event.status < 300:
        return None
    if event.status < 400 and "location" not in event.headers:
        return Trouble(Kind.ERROR, f"{event.status}, which leads nowhere")
    if event.status < 400:
        return final(_redirected(event, what, ours))
    problem = problem_in(event)
    reason = f"{event.status}, {_detail(problem)}"
    if event.status in _BUSY:
        return Trouble(Kind.BUSY, reason, retry_after=retry_after(event.headers))
    # A page that is not ours, where ours came from before, is a gateway's while something is being replaced.
    replaced = ours and had_answer and not problem and event.status in _MISSING
    if event.status >= 500 or event.status in _PASSING or replaced:
        return Trouble(Kind.ERROR, reason, retry_after=retry_after(event.headers))
    if ours and not problem:
        problem = {"detail": "that is no answer of asyncpoll; is the base URL right?"}
    return final(refusal(event.status, problem, what))


def refusal(status: int, problem: Mapping[str, Any], what: str) -> Refused:
    """The error for an answer that says no for good."""
    kind = problem.get("type")
    message = f"{what}: {status}, {_detail(problem)}"
    if kind == Problem.TASK_NOT_FOUND:
        return TaskNotFound(message, status, problem)
    if kind == Problem.TASK_GONE:
        return TaskGone(message, status, problem)
    return Refused(message, status, problem)


def _failure(failure: Failure, what: str) -> Trouble:
    if failure.kind is FailureKind.TOO_LARGE:
        return final(ResponseTooLarge(f"{what}: {failure.detail}"))
    if failure.kind is FailureKind.UNTRUSTED:
        return final(Unreachable(f"{what}: the server's certificate is refused: {failure.detail}"))
    if failure.kind is FailureKind.UNSENDABLE:
        return final(Misused(f"{what}: {failure.detail}"))
    if failure.kind is FailureKind.REDIRECTED:
        return final(Redirected(f"{what}: {failure.detail}", _FOUND))
    return Trouble(Kind.ERROR, failure.detail)


def _redirected(reply: Reply, what: str, ours: bool) -> Refused:
    """Where to, but for what nobody should read."""
    target = brief(place(reply.headers["location"]), 200)
    remedy = (
        "Redirects are not followed, since the token would go along; give the final address as base URL."
        if ours
        else "Give the final address, or a client that follows redirects."
    )
    return Redirected(f"{what}: {reply.status}, a redirect to {target}. {remedy}", reply.status)


def _detail(problem: Mapping[str, Any]) -> str:
    return brief(str(problem.get("detail") or problem.get("title") or "without a problem document"))
