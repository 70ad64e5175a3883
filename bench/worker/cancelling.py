"""How soon a running task sees that it was cancelled."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any
from uuid import UUID

from asyncpoll.contract import Status
from bench.child import Child
from bench.database import Databases
from bench.figures import percentile
from bench.project import environment, manage
from bench.store import StoreConnection, new_task
from bench.worker.figures import Cancels
from tasks_app.store import Snapshot, cancel, enqueue, notify, read

_QUEUE = "default"
_WITHIN_SECONDS = 30.0
_LOOK_EVERY_SECONDS = 0.002
# The first tasks wait for imports and plans.
_WARM_UPS = 3


def measure(databases: Databases, count: int, say: Callable[[str], None]) -> Cancels:
    """Cancel `count` running tasks, one after the other. Raises BenchError."""
    say(f"cancelling {count:,} tasks …")
    with databases.fresh() as url, closing(StoreConnection(url)) as store:
        variables = environment(url, "bench.worker.site.settings")
        with Child(manage("runworker", "--concurrency", "2"), variables) as worker:
            waits = [_cancel_one(store, worker) for _ in range(count + _WARM_UPS)][_WARM_UPS:]
    return Cancels(count, percentile(waits, 50), percentile(waits, 99))


def _cancel_one(store: StoreConnection, worker: Child) -> float:
    """Milliseconds from before the statement that cancels to the task's own look."""
    (task_id,) = store.run(enqueue([replace(new_task(_QUEUE), name="bench.until_cancelled")]))
    store.run(notify([_QUEUE]))
    _until(store, worker, task_id, lambda task: task.status is Status.RUNNING)
    began = time.monotonic()
    store.run(cancel(task_id))
    ended = _until(store, worker, task_id, lambda task: task.is_terminal)
    return (json.loads(ended.result or "null") - began) * 1e3


def _until(
    store: StoreConnection, worker: Child, task_id: UUID, fact: Callable[[Snapshot], Any]
) -> Snapshot:
    deadline = time.monotonic() + _WITHIN_SECONDS
    while time.monotonic() < deadline:
        task = store.run(read([task_id]))[task_id]
        if fact(task):
            return task
        worker.check()
        time.sleep(_LOOK_EVERY_SECONDS)
    raise worker.failure(f"did not start or end a task within {_WITHIN_SECONDS:.0f} s")
