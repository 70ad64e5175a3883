"""`manage.py runworker` as a real process, and the tasks of its database seen from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import psutil
import psycopg

from tasks_app import store
from tasks_app.tasks import Task
from tests.support import eventually

ROOT = Path(__file__).resolve().parents[2]
LEASES = {"ASYNCPOLL_LEASE_SECONDS": "1.5", "ASYNCPOLL_HEARTBEAT_SECONDS": "0.3"}
# Django is imported by the parent and by each child, maybe on a machine that has other things to do.
_UP_WITHIN_SECONDS = 60.0


@dataclass(slots=True)
class Queue:
    """The tasks of a database that worker processes use, seen from outside.

    A context manager that keeps a connection: what waits for a process looks often, and making one takes as long as
    all else.
    """

    url: str
    _connection: psycopg.Connection[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._connection is not None:
            self._connection.close()

    def enqueue(self, task: Task[..., Any], *args: Any) -> UUID:
        """Store a task and tell the workers."""
        new = task.prepare(args, {})
        self.run(store.enqueue([new]))
        self.run(store.notify([new.queue]))
        return new.id

    def enqueue_all(self, task: Task[..., Any], arguments: Iterable[tuple[Any, ...]]) -> list[UUID]:
        """Store many tasks at once and tell the workers."""
        new = [task.prepare(args, {}) for args in arguments]
        self.run(store.enqueue(new))
        self.run(store.notify([task.queue]))
        return [each.id for each in new]

    def ask(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return self._execute(statement, params).fetchall()

    def execute(self, statement: str, *params: Any) -> None:
        """Run a statement that gives no rows."""
        self._execute(statement, params)

    def run(self, call: store.Call[Any]) -> None:
        """Run a verb of the store."""
        self._execute(call.sql, call.params)

    def end_backends(self, application: str = "%") -> int:
        """Cut the connections to the database that call themselves so; gives how many."""
        ((count,),) = self.ask(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE %s",
            application,
        )
        return count

    def state(self, task_id: UUID) -> tuple[Any, ...]:
        """Status, attempt, failures, result."""
        ((*state,),) = self.ask(
            "SELECT status, attempt, failures, result FROM tasks_app_task WHERE id = %s", task_id
        )
        return tuple(state)

    def kinds(self, task_id: UUID) -> list[str]:
        """What happened to the task."""
        rows = self.ask(
            "SELECT kind FROM tasks_app_taskevent WHERE task_id = %s ORDER BY version", task_id
        )
        return [kind for (kind,) in rows]

    def workers(self) -> set[int]:
        """The process ids of the workers that have not ended."""
        rows = self.ask("SELECT pid FROM tasks_app_workerprocess WHERE stopped_at IS NULL")
        return {pid for (pid,) in rows}

    def _execute(
        self, statement: str, params: Sequence[Any] | Mapping[str, Any]
    ) -> psycopg.Cursor[Any]:
        kept = self._connection
        if kept is None:
            kept = self._connection = psycopg.connect(self.url, autocommit=True)
        try:
            return kept.execute(statement.encode(), params)
        except psycopg.OperationalError:
            # The database was away meanwhile. A connection that has just been made is not to blame.
            if not kept.broken:
                raise
            self._connection = psycopg.connect(self.url, autocommit=True)
            return self._connection.execute(statement.encode(), params)


@contextmanager
def runworker(
    queue: Queue, *arguments: str, log: Path | None = None, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker process that is up, with short leases. It writes to the end of `log`, if there is one.

    Whatever is left of it at the end is killed.
    """
    before = queue.workers()
    process = begin_worker(queue, *arguments, log=log, **environment)
    try:
        eventually(
            lambda: process.poll() is not None or queue.workers() - before, _UP_WITHIN_SECONDS
        )
        assert process.poll() is None, "runworker ended at once"
        yield process
    finally:
        family = [process.pid, *(child.pid for child in children(process))]
        for pid in family:
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def begin_worker(
    queue: Queue, *arguments: str, log: Path | None = None, **environment: str
) -> subprocess.Popen[bytes]:
    """The same process before it is up, which whoever began it has to end."""
    with log.open("ab") if log else nullcontext() as output:
        return subprocess.Popen(
            [sys.executable, "manage.py", "runworker", *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                **LEASES,
                "DATABASE_URL": queue.url,
                "DJANGO_SETTINGS_MODULE": "tests.settings",
                **environment,
            },
            stderr=output,
        )


def children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The processes that it has started and that still are."""
    try:
        return psutil.Process(process.pid).children()
    except psutil.NoSuchProcess:
        return []
