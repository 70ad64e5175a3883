"""Storing a submission, once per idempotency key, and waiting for its end where that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from tasks_app.api.idempotency import Key
from tasks_app.api.notifying import Asked, leave_check
from tasks_app.errors import KeyReused, TaskGone, TaskNotFound, TasksError
from tasks_app.hold.admission import Account
from tasks_app.hold.waiting import Wait, wait
from tasks_app.hold.window import Window
from tasks_app.owned import owned
from tasks_app.store import NewTask, Snapshot, enqueue_seen, keep_key
from tasks_app.store.announcer import announcer
from tasks_app.store.pool import Transaction, loop_pool

_NOT_HELD = Window(0.0)


@dataclass(frozen=True, slots=True)
class Submitted:
    """What a submission came to. `result` is JSON text; `is_replayed`: its key had made the task before."""

    row: Snapshot
    result: str | None = None
    window: Window = _NOT_HELD
    is_replayed: bool = False


async def submit_task(
    new: NewTask, key: Key | None, wait_seconds: float, asked: Asked | None = None
) -> Submitted:
    """Store `new`, to be told of as `asked`, or find what its key has made, and wait for the end.

    Raises KeyReused, NotifyRefused, TaskGone, StoreUnavailable.
    """
    stored = await owned(_store(new, key, asked))
    if isinstance(stored, UUID):
        return await _replayed(stored, new.owner, wait_seconds)
    if not wait_seconds:
        return Submitted(stored)
    try:
        return await _waited(stored.id, new.owner, wait_seconds)
    except TasksError:
        # It is stored, whatever became of the wait: an error would have it submitted again.
        return Submitted(stored)


async def _store(new: NewTask, key: Key | None, asked: Asked | None) -> Snapshot | UUID:
    """The task as it was stored, or the id of the one that the key has made before."""
    pool = await loop_pool()
    if key is None and asked is None:
        row = await pool.run(enqueue_seen(new))
    else:
        async with pool.transaction() as transaction:
            made = None if key is None else await _made_before(transaction, key, new)
            if made is not None:
                return made
            row = await transaction.run(enqueue_seen(new))
            if asked is not None:
                await leave_check(transaction, new.id, new.owner, asked)
    announcer.announce_task(new)
    return row


async def _made_before(transaction: Transaction, key: Key, new: NewTask) -> UUID | None:
    kept = await transaction.run(keep_key(key.id, key.request, new.id))
    if kept.request != key.request:
        raise KeyReused(
            "This Idempotency-Key came with another body before; send that body, or a new key."
        )
    return None if kept.task_id == new.id else kept.task_id


async def _replayed(task_id: UUID, owner: str, wait_seconds: float) -> Submitted:
    try:
        return await _waited(task_id, owner, wait_seconds, is_replayed=True)
    except TaskNotFound:
        raise TaskGone(
            f"Task {task_id}, which this Idempotency-Key has made, was deleted; send a new key for a new task."
        ) from None


async def _waited(
    task_id: UUID, owner: str, seconds: float, is_replayed: bool = False
) -> Submitted:
    held = await wait(
        Wait(task_id, 0, seconds, owner, Account(owner), until_terminal=True, route="submit")
    )
    return Submitted(held.row, held.result, held.window, is_replayed)
