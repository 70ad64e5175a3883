"""One wait for many tasks: one place among the held, one future, and one read of what has to be read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from asyncpoll.contract import Outcome
from tasks_app import conf
from tasks_app.errors import StoreUnavailable
from tasks_app.events import emit
from tasks_app.hold.admission import Account, Verdict, admission, granted
from tasks_app.hold.pacing import poll_interval
from tasks_app.hold.waiting import FIRST_READ_SECONDS, LAST_READ_SECONDS, told
from tasks_app.hold.window import Window, backoff_ms
from tasks_app.owned import owned
from tasks_app.store import Snapshot
from tasks_app.wakeup.bundle import Bundle
from tasks_app.wakeup.reader import Cause
from tasks_app.wakeup.service import WakeupService, current_service
from tasks_app.wakeup.topic import Wake

# Results of more than this, together, are left for the next request.
_MOST_RESULT_BYTES = 8 * 1_048_576
_ROUTE = "long_poll_many"


@dataclass(frozen=True, slots=True)
class BundleAsked:
    """The tasks that a client waits for, each with the version it knows. It is held on `account`."""

    known: Mapping[UUID, int]
    asked_seconds: float
    linger_seconds: float
    owner: str | None
    account: Account


@dataclass(frozen=True, slots=True)
class Moved:
    """A task that has something to say. `result` is JSON text."""

    row: Snapshot
    outcome: Outcome
    reset: bool
    result: str | None


@dataclass(frozen=True, slots=True)
class BundleAnswer:
    """What a bundle came to.

    `missing` are not there, or somebody else's; `gone` were there when the wait began; `unread` could not be read.
    `is_over`: there is nothing left to wait for.
    """

    moved: Sequence[Moved]
    missing: Sequence[UUID]
    gone: Sequence[UUID]
    unread: Sequence[UUID]
    outcome: Outcome
    window: Window
    held_seconds: float
    backoff_ms: int
    is_over: bool
    cause: Cause | None


async def wait_for_bundle(asked: BundleAsked) -> BundleAnswer:
    """Wait until some of the tasks move, then linger for more. Raises TooManyHeld, StoreUnavailable."""
    service = await current_service()
    with admission.enter(asked.account, asked.asked_seconds > 0, _ROUTE) as verdict:
        window = granted(verdict, asked.asked_seconds)
        started = time.monotonic()
        bundle = service.hub.join_many(asked.known, asked.owner)
        try:
            why = await _gather(service, bundle, window.granted_seconds, asked.linger_seconds)
        finally:
            service.hub.leave_many(bundle)
    rows = tuple(_within_budget(_moved_rows(bundle)))
    results = await _results(service, rows)
    moved = tuple(_moved(row, bundle.tasks[row.id].known, results) for row in rows)
    answer = _answer(bundle, moved, why, verdict, window, time.monotonic() - started)
    emit(
        "hold.answered",
        route=_ROUTE,
        outcome=answer.outcome,
        cause=answer.cause,
        held_seconds=answer.held_seconds,
        told=told(rows),
    )
    return answer


async def _gather(
    service: WakeupService, bundle: Bundle, granted_seconds: float, linger_seconds: float
) -> Wake:
    if granted_seconds == 0:
        return await bundle.until(bundle.is_read, FIRST_READ_SECONDS)
    ends_at = time.monotonic() + granted_seconds
    why = await bundle.until(bundle.has_news, granted_seconds)
    if why is Wake.TIMEOUT:
        service.hub.confirm_many(bundle)
        return await bundle.until(bundle.is_read, LAST_READ_SECONDS)
    left = min(linger_seconds, ends_at - time.monotonic())
    if why is Wake.ROW and left > 0 and not admission.draining:
        await bundle.until(bundle.is_settled, left)
    return why


def _moved_rows(bundle: Bundle) -> Iterator[Snapshot]:
    """The rows to answer with."""
    for watched in bundle.tasks.values():
        if watched.moved and watched.row is not None and not watched.lost:
            yield watched.row


def _within_budget(rows: Iterable[Snapshot]) -> Iterator[Snapshot]:
    """As many of `rows` as one answer may carry the results of."""
    left = _MOST_RESULT_BYTES
    for row in rows:
        if left <= 0:
            return
        left -= conf.current().MAX_RESULT_BYTES if row.result_apart else len(row.result or "")
        yield row


async def _results(service: WakeupService, rows: Iterable[Snapshot]) -> Mapping[UUID, str | None]:
    """Those that were too large to come with their rows, in one read."""
    apart = [row.id for row in rows if row.result_apart]
    return await owned(service.results(apart)) if apart else {}


def _moved(row: Snapshot, known: int, results: Mapping[UUID, str | None]) -> Moved:
    if row.is_terminal:
        outcome = Outcome.TERMINAL
    else:
        outcome = Outcome.STILL_RUNNING if row.version == known else Outcome.CHANGED
    return Moved(row, outcome, known > row.version, results.get(row.id, row.result))


def _answer(
    bundle: Bundle,
    moved: Sequence[Moved],
    why: Wake,
    verdict: Verdict,
    window: Window,
    held_seconds: float,
) -> BundleAnswer:
    lost = [(task_id, watched) for task_id, watched in bundle.tasks.items() if watched.lost]
    gone = [task_id for task_id, watched in lost if watched.row is not None]
    unread = [
        task_id
        for task_id in bundle.unread
        if why is Wake.TIMEOUT and bundle.tasks[task_id].row is None
    ]
    if unread and len(unread) == len(bundle.tasks):
        raise StoreUnavailable("The database did not answer in time; try again.")
    over = sum(change.row.is_terminal for change in moved) + len(lost)
    is_over = over == len(bundle.tasks)
    outcome = _outcome(is_over, bool(moved or gone), why, verdict)
    return BundleAnswer(
        moved=moved,
        missing=[task_id for task_id, watched in lost if watched.row is None],
        gone=gone,
        unread=unread,
        outcome=outcome,
        window=window,
        held_seconds=held_seconds,
        backoff_ms=backoff_ms(
            outcome, window.granted_seconds, poll_interval(_going_on(bundle), outcome, window)
        ),
        is_over=is_over,
        # What is over at once was answered by the first read, or needed none.
        cause=Cause.FIRST if bundle.cause is None and is_over else bundle.cause,
    )


def _going_on(bundle: Bundle) -> Iterator[Snapshot]:
    for watched in bundle.tasks.values():
        if watched.row is not None and not watched.lost and not watched.row.is_terminal:
            yield watched.row


def _outcome(is_over: bool, has_news: bool, why: Wake, verdict: Verdict) -> Outcome:
    if is_over or has_news:
        return Outcome.TERMINAL if is_over else Outcome.CHANGED
    if why is Wake.DRAINING or verdict is Verdict.DRAINING:
        return Outcome.DRAINING
    return Outcome.SHED if verdict is Verdict.SHED else Outcome.STILL_RUNNING
