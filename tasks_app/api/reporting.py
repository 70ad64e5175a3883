"""What a step of an executor outside means for its task, and committing it under the lease it was claimed with."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime

import psycopg

from asyncpoll.contract import Status
from tasks_app import catalogue, conf
from tasks_app.api.leases import Lease
from tasks_app.errors import LeaseLost, NotJson, RowLocked, TaskGone
from tasks_app.events import emit
from tasks_app.insights.done import Done
from tasks_app.loops import pause_after
from tasks_app.store import (
    ENDINGS,
    Change,
    Committed,
    Leased,
    Milestone,
    commit,
    extend,
    holds,
    settled,
)
from tasks_app.store.pool import Pool, loop_pool
from tasks_app.wakeup import due
from tasks_app.worker.hiding import without_arguments
from tasks_app.worker.milestones import fold
from tasks_app.worker.outcome import Ending, conclude, release

# Of the milestones a task may have, its end has a place of its own.
_RESERVED_EVENTS = 2
# A report on the same task, or a cancel, has a row locked for an instant; somebody's long transaction is not waited for.
_COMMIT_TRIES = 5
_LONGEST_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Said:
    """A step as the store will have it. `result` is JSON text."""

    status: Status
    milestone: Milestone
    result: str | None
    error_type: str
    error_message: str
    retryable: bool

    @property
    def is_news(self) -> bool:
        """False for a RUNNING step that only keeps the lease."""
        said = self.milestone
        return said.progress is not None or bool(said.message) or said.data is not None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a step left its task. `lease_expires_at` None: the attempt is over."""

    status: Status
    version: int
    cancel_requested: bool = False
    lease_expires_at: datetime | None = None
    repeated: bool = False


async def take(lease: Lease, said: Said) -> Standing:
    """Extend the lease, and commit what was said. Raises LeaseLost once the lease is not theirs, TaskGone, NotJson,
    StoreUnavailable."""
    pool = await loop_pool()
    keep = extend(
        lease.claim,
        [lease.task_id],
        conf.current().LEASE_SECONDS,
        attempt=lease.attempt,
        # The arguments: for what of them must not be told with an error.
        whole=said.status is Status.FAILED,
    )
    held = await pool.run(keep)
    if not held:
        return await _repeat(pool, lease, said)
    change = _change(held[0], said)
    if change is None:
        task = held[0].task
        return Standing(
            Status.RUNNING, task.version, task.cancel_requested, held[0].lease_expires_at
        )
    return await _commit(pool, lease, held[0], said, change)


def _change(held: Leased, said: Said) -> Change | None:
    """What the step means for its task; None where there is nothing to show."""
    if said.status is Status.RUNNING:
        has_room = held.task.version < conf.current().MAX_EVENTS - _RESERVED_EVENTS
        news = said.is_news and has_room
        return (
            Change(held.task.id, held.task.attempt, Status.RUNNING, (said.milestone,))
            if news
            else None
        )
    change = _ending(held, said)
    return change._replace(milestones=(fold(said.milestone, change.milestones[-1]),))


def _ending(held: Leased, said: Said) -> Change:
    if said.status is Status.PENDING:
        return release(held.task)
    if said.status is Status.CANCELLED:
        milestone = Milestone(ENDINGS[Status.CANCELLED])
        return Change(held.task.id, held.task.attempt, Status.CANCELLED, (milestone,))
    ending = Ending(said.result, said.error_type, said.error_message, permanent=not said.retryable)
    change = conclude(
        held.task, ending, catalogue.retry_policy, cancelled=held.task.cancel_requested
    )
    assert change is not None
    return change


async def _commit(pool: Pool, lease: Lease, held: Leased, said: Said, change: Change) -> Standing:
    try:
        committed = await _try_commit(pool, lease, change)
    except psycopg.DataError as error:
        raise NotJson(f"The database can't store this step: {error}; change it.") from None
    if not committed:
        return await _repeat(pool, lease, said)
    status, version = committed[0].status, committed[0].version
    if not change.ends_attempt:
        return Standing(status, version, held.task.cancel_requested, held.lease_expires_at)
    if status is Status.PENDING:
        due.tell(change.delay_seconds)
    _tell(held, change, status)
    return Standing(status, version, held.task.cancel_requested)


async def _try_commit(pool: Pool, lease: Lease, change: Change) -> list[Committed]:
    """Empty where the lease is not theirs any more. Raises RowLocked where somebody keeps it so."""
    settings = conf.current()
    call = commit(
        lease.claim,
        [change],
        reoffer=settings.limits_running,
        anywhere=settings.MAX_RUNNING_PER_OWNER > 0,
    )
    for tries in range(1, _COMMIT_TRIES + 1):
        started = time.monotonic()
        committed = await pool.run(call)
        if committed:
            duration_ms = (time.monotonic() - started) * 1000
            emit("task.committed", size=len(committed), duration_ms=duration_ms)
            return committed
        held = await pool.run(holds(lease.claim, [change]))
        if not held:
            return []
        await asyncio.sleep(pause_after(tries, _LONGEST_PAUSE_SECONDS))
    raise RowLocked(
        f"Another transaction has locked task {lease.task_id}; try again once it has ended."
    )


async def _repeat(pool: Pool, lease: Lease, said: Said) -> Standing:
    """The answer to an end that was heard before. Raises LeaseLost for everything else that comes too late."""
    now = await pool.run(
        settled(
            lease.claim,
            lease.task_id,
            lease.attempt,
            said.status,
            result=said.result,
            error_type=said.error_type,
            error_message=said.error_message,
        )
    )
    if now is None:
        raise TaskGone(f"Task {lease.task_id} was deleted; stop working on it.")
    if now.same:
        return Standing(now.status, now.version, repeated=True)
    emit("task.fenced", id=lease.task_id, name=now.name, attempt=lease.attempt, status=said.status)
    raise LeaseLost(
        f"Attempt {lease.attempt} does not hold task {lease.task_id} any more: its lease ran out, or it ended. Nothing "
        "was stored; stop working on it."
    )


def _tell(held: Leased, change: Change, status: Status) -> None:
    """`status` is where the task is; a retry of one that somebody cancelled is none."""
    task, ran_ms, waited_ms = (
        held.task,
        held.ran_seconds * 1000,
        held.task.queue_wait_seconds * 1000,
    )
    emit(
        "task.finished",
        id=task.id,
        name=task.name,
        attempt=task.attempt,
        status=change.status,
        error_type=change.error_type,
        error_message=without_arguments(held.task, change.error_message),
        retry_in_seconds=change.delay_seconds,
        duration_ms=ran_ms,
        queue_wait_ms=waited_ms,
    )
    if status.is_terminal:
        done = Done(task.name, task.id, task.queue, task.attempt, status.value, ran_ms, waited_ms)
        emit("tasks.done", ended=[done])
