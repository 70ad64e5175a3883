"""Tasks to wait for, and their ends: in Postgres as a worker writes them, or in the memory of a baseline."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from uuid_utils.compat import uuid7

from bench.errors import BenchError
from bench.store import StoreConnection, new_task, success, take
from tasks_app.store import commit, enqueue

KNOWN_VERSION = 2
"""The version of every task that runs: stored at 1, claimed at 2."""

_QUEUE = "bench"
_PER_STATEMENT = 500
_TIMEOUT_SECONDS = 60
_LOOK_EVERY_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Ended:
    """Tasks that ended. Times are of the monotonic clock: when that was asked for, and when it was so."""

    ids: Sequence[UUID]
    sent_at: float
    done_at: float


class Tasks(Protocol):
    """Whoever has the tasks of one server."""

    def begin(self, count: int) -> list[UUID]:
        """Have `count` new tasks run."""

    def end(self, ids: Sequence[UUID]) -> list[Ended]:
        """End tasks, in as few steps as is done."""

    def close(self) -> None:
        """Give up the connection."""


class StoredTasks:
    """Tasks in Postgres, through the same statements that a worker uses."""

    def __init__(self, url: str) -> None:
        self._store = StoreConnection(url)
        self._worker = uuid7()

    def begin(self, count: int) -> list[UUID]:
        """Enqueue and claim."""
        ids: list[UUID] = []
        for start in range(0, count, _PER_STATEMENT):
            some = [new_task(_QUEUE) for _ in range(min(_PER_STATEMENT, count - start))]
            self._store.run(enqueue(some))
            claimed = self._store.run(take(self._worker, len(some), _QUEUE))
            ids += [task.id for task in claimed]
        self._store.execute("ANALYZE tasks_app_task")
        return ids

    def submit(self, count: int) -> list[UUID]:
        """Enqueue; gives them in the order in which `start` has to name them."""
        ids = self._store.run(enqueue([new_task(_QUEUE) for _ in range(count)]))
        self._store.execute("ANALYZE tasks_app_task")
        return sorted(ids)

    def start(self, task_id: UUID) -> float:
        """Claim the next task, which must be this one; when that was committed, by the monotonic clock."""
        claimed = self._store.run(take(self._worker, 1, _QUEUE))
        if [task.id for task in claimed] != [task_id]:
            raise BenchError(f"Task {task_id} could not be claimed in its turn.")
        return time.monotonic()

    def start_next(self, within: float) -> tuple[UUID, float]:
        """Claim whichever is next, as soon as there is one: its id, and when that was committed."""
        until = time.monotonic() + within
        while not (claimed := self._store.run(take(self._worker, 1, _QUEUE))):
            if time.monotonic() > until:
                raise BenchError(f"Within {within} s nobody submitted a task.")
            time.sleep(_LOOK_EVERY_SECONDS)
        return claimed[0].id, time.monotonic()

    def end(self, ids: Sequence[UUID]) -> list[Ended]:
        """Commit, as many at once as a busy worker does."""
        return [self._end(part) for part in parts(ids, _PER_STATEMENT)]

    def close(self) -> None:
        """Close the connection."""
        self._store.close()

    def _end(self, ids: Sequence[UUID]) -> Ended:
        call = commit(self._worker, [success(task_id) for task_id in ids])
        sent_at = time.monotonic()
        done = self._store.run(call)
        done_at = time.monotonic()
        if len(done) != len(ids):
            raise BenchError(f"{len(ids) - len(done)} of {len(ids)} tasks could not be committed.")
        return Ended(ids, sent_at, done_at)


class BaselineTasks:
    """Tasks in the memory of a baseline, which is told over HTTP."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)

    def begin(self, count: int) -> list[UUID]:
        """Post their ids."""
        ids = [uuid7() for _ in range(count)]
        self._post("/tasks", ids)
        return ids

    def end(self, ids: Sequence[UUID]) -> list[Ended]:
        """Post their ids; the server says when it told each waiter."""
        sent_at = time.monotonic()
        told_at = self._post("/finish", ids)["at"]
        return [Ended([task_id], sent_at, at) for task_id, at in zip(ids, told_at, strict=True)]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _post(self, path: str, ids: Sequence[UUID]) -> dict[str, Any]:
        body = json.dumps({"ids": [str(task_id) for task_id in ids]})
        self._connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise BenchError(f"POST {path} was answered with {answer.status}: {text[:200]!r}")
        return dict(json.loads(text))


def parts(ids: Sequence[UUID], size: int) -> list[Sequence[UUID]]:
    """`ids` in pieces of at most `size`."""
    return [ids[at : at + size] for at in range(0, len(ids), size)]
