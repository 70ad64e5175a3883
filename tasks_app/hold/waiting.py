"""One wait: register, read, wait, re-read, and say why it ended."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from asyncpoll.contract import Outcome
from tasks_app.errors import StoreUnavailable, TaskGone, TaskNotFound
from tasks_app.events import emit
from tasks_app.hold.admission import Account, Verdict, admission, granted
from tasks_app.hold.pacing import poll_interval
from tasks_app.hold.window import Window, backoff_ms
from tasks_app.owned import owned
from tasks_app.store import Snapshot
from tasks_app.wakeup.reader import Cause
from tasks_app.wakeup.service import WakeupService, current_service
from tasks_app.wakeup.topic import Waiter, Wake

# A first read that takes longer than this means that the database is away.
FIRST_READ_SECONDS = 3.0
# The last look before a hold is said to have run out may take this long; the client's read timeout allows for more.
LAST_READ_SECONDS = 2.0
_NEWS = frozenset({Outcome.CHANGED, Outcome.TERMINAL})


@dataclass(frozen=True, slots=True)
class Wait:
    """What a client waits for. `known` is its version (0: none); `until_terminal` ignores mere changes.

    `owner` None may see every task. It is held on `account`. `route` is what the request came by, for who counts them.
    """

    task_id: UUID
    known: int
    asked_seconds: float
    owner: str | None
    account: Account
    until_terminal: bool = False
    route: str = "long_poll"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a wait came to. `result` is JSON text, and only there when the task is over."""

    row: Snapshot
    outcome: Outcome
    window: Window
    held_seconds: float
    backoff_ms: int
    reset: bool = False
    result: str | None = None
    cause: Cause | None = None


async def wait(asked: Wait) -> Answer:
    """Wait as `asked` says. Raises TaskNotFound (also for somebody else's), TaskGone, TooManyHeld, StoreUnavailable."""
    service = await current_service()
    with admission.enter(asked.account, asked.asked_seconds > 0, asked.route) as verdict:
        window = granted(verdict, asked.asked_seconds)
        started = time.monotonic()
        waiter = service.hub.join(
            asked.task_id, None if asked.until_terminal else asked.known, asked.owner
        )
        try:
            why = await _woken(service, waiter, window.granted_seconds)
        finally:
            service.hub.leave(waiter)
    answer = _answer(asked, waiter, why, verdict, window, time.monotonic() - started)
    emit(
        "hold.answered",
        route=asked.route,
        outcome=answer.outcome,
        cause=answer.cause,
        held_seconds=answer.held_seconds,
        finished_at=answer.row.finished_at,
        told=told((answer.row,)) if answer.outcome in _NEWS else (),
    )
    return await _with_large_result(service, answer)


def told(rows: Iterable[Snapshot]) -> Sequence[tuple[UUID, str, str, str]]:
    """Of rows that an answer brings: id, type, queue and the trace context of those that have one."""
    return [(row.id, row.name, row.queue, row.trace_context) for row in rows if row.trace_context]


async def _woken(service: WakeupService, waiter: Waiter, granted_seconds: float) -> Wake:
    """Wait until something answers or the hold runs out; then there is a row, or the task or the database is gone."""
    if granted_seconds == 0:
        # A row from memory is the answer; otherwise whatever the first read brings.
        why = Wake.ROW if waiter.row is not None else await waiter.look(FIRST_READ_SECONDS)
    else:
        why = await waiter.woken(granted_seconds)
    if why is Wake.TIMEOUT and waiter.row is not None and not service.hub.is_current(waiter):
        service.hub.confirm(waiter)
        why = await waiter.look(LAST_READ_SECONDS)
    elif waiter.row is None and why in (Wake.TIMEOUT, Wake.DRAINING) and granted_seconds:
        look = await waiter.look(LAST_READ_SECONDS)
        why = look if look is Wake.GONE else why
    return why


def _answer(
    asked: Wait, waiter: Waiter, why: Wake, verdict: Verdict, window: Window, held_seconds: float
) -> Answer:
    row = waiter.row
    if why is Wake.GONE and row is not None and _may_see(asked, row):
        raise deleted(asked.task_id)
    if why is not Wake.GONE and row is None:
        raise StoreUnavailable("The database did not answer in time; try again.")
    if row is None or not _may_see(asked, row):
        raise TaskNotFound(asked.task_id)
    outcome = _outcome(asked, row, why, verdict)
    return Answer(
        row=row,
        outcome=outcome,
        window=window,
        held_seconds=held_seconds,
        backoff_ms=backoff_ms(
            outcome, window.granted_seconds, poll_interval([row], outcome, window)
        ),
        reset=not asked.until_terminal and asked.known > row.version,
        result=row.result if outcome is Outcome.TERMINAL else None,
        cause=waiter.cause,
    )


def deleted(task_id: UUID) -> TaskGone:
    """What to say of a task that was there when the wait began."""
    return TaskGone(f"Task {task_id} was deleted while it was waited for; stop polling.")


def _may_see(asked: Wait, row: Snapshot) -> bool:
    return asked.owner is None or row.owner == asked.owner


def _outcome(asked: Wait, row: Snapshot, why: Wake, verdict: Verdict) -> Outcome:
    if row.is_terminal:
        return Outcome.TERMINAL
    if not asked.until_terminal and row.version != asked.known:
        return Outcome.CHANGED
    if why is Wake.DRAINING or verdict is Verdict.DRAINING:
        return Outcome.DRAINING
    return Outcome.SHED if verdict is Verdict.SHED else Outcome.STILL_RUNNING


async def _with_large_result(service: WakeupService, answer: Answer) -> Answer:
    """The answer with a result that was too large to come with its row."""
    if answer.outcome is not Outcome.TERMINAL or not answer.row.result_apart:
        return answer
    results = await owned(service.results([answer.row.id]))
    return replace(answer, result=results.get(answer.row.id))
