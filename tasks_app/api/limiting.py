"""429 for a caller that is answered at once too often without having learned anything."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from asyncpoll.contract import Outcome, Problem
from tasks_app import conf
from tasks_app.api.identity import Identity, caller
from tasks_app.api.responses import problem
from tasks_app.hold.shortpolls import short_polls
from tasks_app.hold.window import Window
from tasks_app.wakeup.reader import Cause

# A shorter hold is short polling by another name.
_HOLD_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Asking:
    """An answer as the limit sees it: what was asked about, and from which version to which it brought the caller."""

    about: UUID
    window: Window
    outcome: Outcome
    cause: Cause | None
    version: int
    known: int


def limited(request: HttpRequest, identity: Identity, asking: Asking) -> HttpResponse | None:
    """The refusal; None where the answer may be given."""
    was_held = asking.window.granted_seconds >= _HOLD_SECONDS and asking.cause is not Cause.FIRST
    if was_held or asking.outcome in (Outcome.DRAINING, Outcome.SHED):
        return None
    if short_polls.allows(asking.about, caller(request, identity), asking.version, asking.known):
        return None
    return problem(
        Problem.TOO_MANY_REQUESTS,
        429,
        f"More than {conf.current().MAX_SHORT_POLLS_PER_SECOND} immediate answers a second for this task; hold the "
        "request instead: send the last answer's version as client_known_version, with max_hold_seconds=25.",
        Retry_After="1",
    )
