"""One wait for any change at all: for a page that shows the whole."""

from __future__ import annotations

import time

from asyncpoll.contract import Outcome
from tasks_app.events import emit
from tasks_app.hold.admission import Account, Verdict, admission, granted
from tasks_app.wakeup.service import current_service
from tasks_app.wakeup.topic import Wake

_ROUTE = "overview"
_OUTCOMES = {Verdict.SHED: Outcome.SHED, Verdict.DRAINING: Outcome.DRAINING}
_WAKES = {Wake.ROW: Outcome.CHANGED, Wake.DRAINING: Outcome.DRAINING}


# How stale a page may be whose polls come to another process each time.
_STRANGER_SECONDS = 3.0


async def look_on(account: Account, mark: str, asked_seconds: float) -> tuple[Outcome, str]:
    """Wait for a change since `mark` ("": any is news), at most so long; the outcome, and the mark to come back with.

    What has changed is for the caller to read. Raises TooManyHeld.
    """
    onlookers = (await current_service()).hub.onlookers
    if onlookers.is_stranger(mark):
        asked_seconds = min(asked_seconds, _STRANGER_SECONDS)
    with admission.enter(account, asked_seconds > 0, _ROUTE) as verdict:
        window = granted(verdict, asked_seconds)
        started = time.monotonic()
        outcome = _OUTCOMES.get(verdict, Outcome.STILL_RUNNING)
        if window.granted_seconds:
            alarm = onlookers.join(mark)
            try:
                why = await alarm.woken(window.granted_seconds)
            finally:
                onlookers.leave(alarm)
            outcome = _WAKES.get(why, Outcome.STILL_RUNNING)
    emit(
        "hold.answered",
        route=_ROUTE,
        outcome=outcome,
        cause=None,
        held_seconds=time.monotonic() - started,
    )
    return outcome, onlookers.mark
