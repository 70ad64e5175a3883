"""429 for a caller that is answered at once too often without having learned anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from asyncpoll.contract import Outcome, Problem
from tasks_app import conf
from tasks_app.api.identity import Identity, caller
from tasks_app.api.responses import problem
from tasks_app.hold.shortpolls import SHORTEST_HOLD_SECONDS, Brought, short_polls
from tasks_app.hold.window import Window
from tasks_app.wakeup.reader import Cause


@dataclass(frozen=True, slots=True)
class Asking:
    """An answer as the limit sees it: how it came about, and what it says of each task that was asked for."""

    window: Window
    outcome: Outcome
    cause: Cause | None
    brought: Sequence[Brought]


def _refusal() -> HttpResponse:
    return problem(
        Problem.TOO_MANY_REQUESTS,
        429,
        f"More than {conf.current().MAX_SHORT_POLLS_PER_SECOND} immediate answers a second for this task; hold the "
        "request instead: send the last answer's version as client_known_version, with max_hold_seconds=25.",
        Retry_After="1",
    )


def limited(
    request: HttpRequest,
    identity: Identity,
    asking: Asking,
    refusal: Callable[[], HttpResponse] = _refusal,
) -> HttpResponse | None:
    """The refusal; None where the answer may be given."""
    was_held = (
        asking.window.granted_seconds >= SHORTEST_HOLD_SECONDS and asking.cause is not Cause.FIRST
    )
    # Whoever is drained can't have been told by this server before, and comes back to another.
    if was_held or asking.outcome is Outcome.DRAINING:
        return None
    if short_polls.allows(caller(request, identity), asking.brought):
        return None
    return _refusal_of_shed() if asking.outcome is Outcome.SHED else refusal()


def _refusal_of_shed() -> HttpResponse:
    return problem(
        Problem.TOO_MANY_REQUESTS,
        429,
        f"More than {conf.current().MAX_SHORT_POLLS_PER_SECOND} polls a second for this task were shed; this server "
        "holds as many as it can, so wait for recommended_client_backoff_ms after each answer.",
        # As long as the backoff of what was shed, at most.
        Retry_After="5",
    )
