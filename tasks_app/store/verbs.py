"""The verbs of the store. Each makes the Call for its statement; the statement's first line says what it promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from asyncpoll.contract import Status
from tasks_app import conf
from tasks_app.limits import HEAD_START_SECONDS
from tasks_app.store.call import Call, Rows, json_text
from tasks_app.store.patience import PATIENCE
from tasks_app.store.rows import (
    ENDINGS,
    Committed,
    NewTask,
    Rescued,
    Snapshot,
    WorkerFacts,
    committed,
    first_snapshot,
    snapshot,
)

# Code outside the workers holds its tasks under this name, so that no worker's commit or heartbeat can touch them.
OUTSIDE_WORKER = UUID("00000000-0000-8000-8000-000000000001")


def enqueue(tasks: Sequence[NewTask]) -> Call[list[UUID]]:
    """Store `tasks`; gives their ids."""
    return Call(
        "enqueue",
        {
            "head_start": HEAD_START_SECONDS,
            "ids": [task.id for task in tasks],
            "names": [task.name for task in tasks],
            "queues": [task.queue for task in tasks],
            "owners": [task.owner for task in tasks],
            "priorities": [task.priority for task in tasks],
            "args": [task.args for task in tasks],
            "kwargs": [task.kwargs for task in tasks],
            "max_attempts": [task.max_attempts for task in tasks],
            "timeouts": [float(task.timeout_seconds) for task in tasks],
            "run_ats": [task.run_at for task in tasks],
            "retried_from": [task.retried_from for task in tasks],
            "trace_contexts": [task.trace_context for task in tasks],
            "backends": [task.backend for task in tasks],
        },
        _ids,
    )


def enqueue_seen(new: NewTask) -> Call[Snapshot]:
    """Store one task; gives it as `read` would, unless somebody was quicker."""
    return replace(enqueue([new]), shape=lambda rows: first_snapshot(new, rows[0][1]))  # type: ignore[return-value,arg-type]


def heartbeat(
    worker: WorkerFacts, held: Sequence[tuple[UUID, int]], lease_seconds: float
) -> Call[dict[tuple[UUID, int], bool]]:
    """Extend the leases of `held` (task, attempt). Gives those still held, each with: was its cancel asked for?"""
    return Call(
        "heartbeat",
        {
            "worker": worker.id,
            "hostname": worker.hostname,
            "pid": worker.pid,
            "queues": orjson.dumps(worker.queues).decode(),
            "concurrency": worker.concurrency,
            "ids": [task_id for task_id, _ in held],
            "attempts": [attempt for _, attempt in held],
            "lease": lease_seconds,
        },
        lambda rows: {(row[0], row[1]): row[2] for row in rows},
    )


def stop_worker(worker: UUID) -> Call[None]:
    """Record that the worker process ended."""
    return Call("stop_worker", {"worker": worker}, lambda rows: None)


def give_back(worker: UUID, known: Sequence[tuple[UUID, int]]) -> Call[list[Committed]]:
    """Let go of what is the worker's, but not among the attempts (task, attempt) that it knows of. No failure."""
    return Call(
        "give_back",
        {
            "worker": worker,
            "ids": [task_id for task_id, _ in known],
            "attempts": [attempt for _, attempt in known],
            "limited": conf.current().limits_running,
        },
        committed,
    )


def rescue(
    limit: int,
    retry_base_seconds: float,
    retry_max_seconds: float,
    backoffs: Mapping[str, tuple[float, float]] | None = None,
) -> Call[list[Rescued]]:
    """Give tasks whose lease ran out to another attempt, or end them. `backoffs` gives base and cap, in seconds, of tasks
    that have their own, by name."""
    own = [
        {"name": name, "base": base, "cap": cap} for name, (base, cap) in (backoffs or {}).items()
    ]
    return Call(
        "rescue",
        {
            "limit": limit,
            "retry_base": retry_base_seconds,
            "retry_max": retry_max_seconds,
            "backoffs": json_text(own),
            "head_start": HEAD_START_SECONDS,
            "limited": conf.current().limits_running,
        },
        lambda rows: [Rescued(row[0], Status(row[1]), *row[2:8]) for row in rows],
    )


def promote(limit: int) -> Call[tuple[int, float | None]]:
    """Let due tasks into the ready index. Gives how many, and the seconds until the next one is due."""
    return Call("promote", {"limit": limit}, lambda rows: (rows[0][0], rows[0][1]))


def cancel(task_id: UUID, *, patient: bool = True) -> Call[Committed | None]:
    """End a PENDING task, ask a RUNNING one to stop. None: nothing changed (over, asked before, or unknown).

    Waits as long as somebody has the row locked; not `patient`, it fails if that takes longer than a second.
    """
    return Call(
        "cancel",
        {"id": task_id, "patience": None if patient else PATIENCE},
        lambda rows: _first(committed(rows)),
    )


def run_again(task_id: UUID, new_id: UUID) -> Call[tuple[UUID, str] | None]:
    """Enqueue a copy of a task that is over. Gives its id and queue; None: not over, or unknown."""
    return Call(
        "run_again",
        {"id": task_id, "new_id": new_id, "head_start": HEAD_START_SECONDS},
        lambda rows: (rows[0][0], rows[0][1]) if rows else None,
    )


def step(
    task_id: UUID,
    status: Status,
    *,
    progress: float | None = None,
    message: str | None = None,
    data: str | None = None,
    result: str | None = None,
    error_type: str = "",
    error_message: str = "",
) -> Call[int | None]:
    """Report on a task that code outside the workers runs. Gives the new version; None: a worker's, over, or unknown."""
    return Call(
        "step",
        {
            "id": task_id,
            "worker": OUTSIDE_WORKER,
            "status": status.value,
            "kind": ENDINGS.get(status, "progress"),
            "progress": progress,
            "message": message,
            "data": data,
            "result": result,
            "error_type": error_type,
            "error_message": error_message,
            "limited": conf.current().limits_running,
        },
        lambda rows: rows[0][0] if rows else None,
    )


def read(ids: Sequence[UUID]) -> Call[dict[UUID, Snapshot]]:
    """The tasks as they are now; an id that is missing from the answer does not exist."""
    return Call("read", {"ids": list(ids)}, lambda rows: {row[0]: snapshot(row) for row in rows})


def read_results(ids: Sequence[UUID]) -> Call[dict[UUID, str | None]]:
    """The stored results of some tasks, as JSON text."""
    return Call("read_results", {"ids": list(ids)}, lambda rows: {row[0]: row[1] for row in rows})


def notify(queues: Sequence[str], due: datetime | None = None) -> Call[None]:
    """Tell the workers of `queues` that there may be work, and whoever promotes that some is due at `due`."""
    return Call("notify", {"queues": list(queues), "due": due}, lambda rows: None)


def delete(ids: Sequence[UUID]) -> Call[list[UUID]]:
    """Delete tasks with their history and step records; gives those that existed."""
    return Call("delete", {"ids": list(ids), "limited": conf.current().limits_running}, _ids)


def ping() -> Call[None]:
    """Ask the database for a sign of life."""
    return Call("ping", {}, lambda rows: None)


def _ids(rows: Rows) -> list[UUID]:
    return [row[0] for row in rows]


def _first(items: list[Any]) -> Any:
    return items[0] if items else None
