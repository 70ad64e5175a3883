"""Plain tasks, and a connection that runs the store's statements just as a worker's pool does."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

import psycopg
from uuid_utils.compat import uuid7

from asyncpoll.contract import Status
from bench.meter import cpu_seconds
from tasks_app.store import Call, Change, Claimed, Lane, Milestone, NewTask, Share, claim

T = TypeVar("T")

LEASE_SECONDS = 86_400.0
"""No lease may run out while something is measured."""

# As in tasks_app.store.pool.
_PREPARE_FROM = 2


class StoreConnection:
    """One autocommit connection and one cursor, until `close()`."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=_PREPARE_FROM)
        self._cursor = self._connection.cursor(binary=True)

    def cpu_seconds(self) -> float:
        """CPU time of the process that serves it, as far as that is on this machine; else NaN."""
        try:
            return cpu_seconds(self._connection.info.backend_pid)
        except OSError:
            return float("nan")

    def run(self, call: Call[T]) -> T:
        """Execute `call` and commit it."""
        self._cursor.execute(call.sql_bytes, call.params, prepare=call.prepare)
        return call.shape(self._cursor.fetchall() if self._cursor.description else [])

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run any other statement; gives its rows."""
        cursor = self._connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def new_task(queue: str) -> NewTask:
    """A task without arguments."""
    return NewTask(
        id=uuid7(),
        name="bench.nothing",
        queue=queue,
        owner="",
        priority=0,
        args="[]",
        kwargs="{}",
        max_attempts=1,
        timeout_seconds=LEASE_SECONDS,
    )


def take(worker: UUID, count: int, queue: str) -> Call[list[Claimed]]:
    """Claim `count` such tasks."""
    return claim(worker, [Share(Lane(queue, ""), count)], LEASE_SECONDS)


def success(task_id: UUID) -> Change:
    """The end of its first attempt."""
    return Change(task_id, 1, Status.SUCCESS, (Milestone("succeeded", 1.0),), result='{"ok":true}')
