"""Verbs for Django's Tasks framework, which wants more of a task than whoever waits for it: its call and its attempts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from asyncpoll.contract import Status
from tasks_app.store.call import Call
from tasks_app.store.rows import Claimed, NewTask
from tasks_app.store.verbs import enqueue

_MOMENTS = ("created_at", "run_at", "first_started_at", "started_at")


@dataclass(frozen=True, slots=True)
class Recalled:
    """A task of the framework. `args`, `kwargs` and `result` are JSON text; `workers` has one for each attempt."""

    id: UUID
    name: str
    queue: str
    priority: int
    backend: str
    status: Status
    version: int
    progress: float | None
    message: str
    cancel_requested: bool
    args: str
    kwargs: str
    created_at: datetime
    run_at: datetime
    first_started_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    workers: Sequence[UUID] = ()
    result: str | None = None
    error_type: str = ""
    error_message: str = ""
    error_class: str = ""
    traceback: str = ""


def recall(task_id: UUID) -> Call[Recalled | None]:
    """One task of the framework as it is now; None: unknown, or enqueued otherwise."""
    return Call("recall", {"id": task_id}, lambda rows: _recalled(rows[0]) if rows else None)


def enqueue_recalled(new: NewTask) -> Call[Recalled]:
    """Store one task; gives it as `recall` would."""
    return replace(enqueue([new]), shape=lambda rows: _enqueued(new, rows[0][1]))  # type: ignore[return-value,arg-type]


def adopted(task_ids: Sequence[UUID]) -> Call[dict[UUID, str]]:
    """Of tasks of the framework that were just claimed, what `Claimed.adopted` tells of each."""
    return Call("adopted", {"ids": list(task_ids)}, lambda rows: {row[0]: row[1] for row in rows})


def recall_claimed(claimed: Claimed) -> Recalled:
    """A task of the framework that was just claimed, without asking the database."""
    assert claimed.adopted is not None
    facts: dict[str, Any] = json.loads(claimed.adopted)
    for moment in _MOMENTS:
        facts[moment] = datetime.fromisoformat(facts[moment])
    return Recalled(
        id=claimed.id,
        name=claimed.name,
        queue=claimed.queue,
        status=Status.RUNNING,
        version=claimed.version,
        progress=None,
        message="",
        cancel_requested=claimed.cancel_requested,
        args=claimed.args,
        kwargs=claimed.kwargs,
        workers=[UUID(worker) for worker in facts.pop("workers")],
        **facts,
    )


def _recalled(row: tuple[Any, ...]) -> Recalled:
    identity, name, queue, priority, backend, status, *rest = row
    return Recalled(identity, name, queue, priority, backend, Status(status), *rest)


def _enqueued(new: NewTask, at: datetime) -> Recalled:
    return Recalled(
        id=new.id,
        name=new.name,
        queue=new.queue,
        priority=new.priority,
        backend=new.backend,
        status=Status.PENDING,
        version=1,
        progress=None,
        message="",
        cancel_requested=False,
        args=new.args,
        kwargs=new.kwargs,
        created_at=at,
        run_at=new.run_at or at,
    )
