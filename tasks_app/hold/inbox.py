"""One wait for an inbox: register, look, wait, read."""

from __future__ import annotations

import time
from dataclasses import dataclass

from asyncpoll.contract import Outcome
from tasks_app.events import emit
from tasks_app.hold.admission import Account, Verdict, admission, granted
from tasks_app.hold.window import Window, backoff_ms
from tasks_app.owned import owned
from tasks_app.store import Entry, read_inbox
from tasks_app.wakeup.service import WakeupService, current_service
from tasks_app.wakeup.topic import Wake

MOST_ENTRIES = 100
_ROUTE = "inbox"


@dataclass(frozen=True, slots=True)
class InboxAnswer:
    """The oldest entries that are not acknowledged. `at_once`: they were there when the request came."""

    entries: tuple[Entry, ...]
    has_more: bool
    outcome: Outcome
    window: Window
    held_seconds: float
    backoff_ms: int
    at_once: bool


async def wait_for_inbox(owner: str, account: Account, asked_seconds: float) -> InboxAnswer:
    """The inbox of `owner`, held while it is empty. Raises TooManyHeld, StoreUnavailable."""
    service = await current_service()
    with admission.enter(account, asked_seconds > 0, _ROUTE) as verdict:
        window = granted(verdict, asked_seconds)
        started = time.monotonic()
        # Joined before the first read: what comes in between wakes.
        waiter = service.hub.inboxes.join(owner)
        try:
            entries = await _read(service, owner)
            at_once, why = bool(entries), Wake.TIMEOUT
            until = started + window.granted_seconds
            while not entries and (left := until - time.monotonic()) > 0:
                why = await waiter.woken(left)
                if why is Wake.DRAINING:
                    break
                waiter.reset()
                # Also at the end: nothing is said to have stayed empty from memory.
                entries = await _read(service, owner)
        finally:
            service.hub.inboxes.leave(waiter)
    outcome = _outcome(bool(entries), why, verdict)
    held_seconds = time.monotonic() - started
    emit("hold.answered", route=_ROUTE, outcome=outcome, cause=None, held_seconds=held_seconds)
    return InboxAnswer(
        entries=tuple(entries[:MOST_ENTRIES]),
        has_more=len(entries) > MOST_ENTRIES,
        outcome=outcome,
        window=window,
        held_seconds=held_seconds,
        backoff_ms=backoff_ms(outcome, window.granted_seconds),
        at_once=at_once,
    )


async def _read(service: WakeupService, owner: str) -> list[Entry]:
    return await owned(service.pool.run(read_inbox(owner, MOST_ENTRIES + 1)))


def _outcome(has_entries: bool, why: Wake, verdict: Verdict) -> Outcome:
    if has_entries:
        return Outcome.CHANGED
    if why is Wake.DRAINING or verdict is Verdict.DRAINING:
        return Outcome.DRAINING
    return Outcome.SHED if verdict is Verdict.SHED else Outcome.STILL_RUNNING
