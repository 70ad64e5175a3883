"""Tasks that leave a side effect of their own in the database, for workers that die and databases that go away."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg

from tasks_app import events
from tasks_app.store import dsn
from tasks_app.tasks import Backoff, current_task, task

# One row for each run of an attempt: an attempt that ran twice has two.
EFFECTS = (
    "CREATE TABLE effect (task_id uuid, attempt int, run uuid, PRIMARY KEY (task_id, attempt, run))"
)
# However often its worker dies, the fault of a task is never that its attempts were used up.
_MANY = 100
_SOON = Backoff(base=0.1, cap=1.0)
# Longer than any outage of a test.
_PATIENCE_SECONDS = 60.0
LEAVES_WITH = 7

_mine = threading.local()


@task(name="fault.square", max_attempts=_MANY, backoff=_SOON)
def square(number: int, seconds: float = 0.0) -> int:
    """Leaves its effect, works so long, and gives the square."""
    leave_effect()
    time.sleep(seconds)
    return number * number


@task(name="fault.asquare", max_attempts=_MANY, backoff=_SOON)
async def asquare(number: int, seconds: float = 0.0) -> int:
    """The same as a coroutine, which says that it has come half-way."""
    await asyncio.to_thread(leave_effect)
    current_task().report(0.5, "half-way")
    await asyncio.sleep(seconds)
    return number * number


@task(name="fault.square_at", max_attempts=_MANY, backoff=_SOON)
def square_at(number: int, gate: str) -> int:
    """Leaves its effect, waits until the file `gate` exists, and gives the square."""
    leave_effect()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not Path(gate).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return number * number


@task(name="fault.square_and_die", max_attempts=_MANY, backoff=_SOON)
def square_and_die(number: int) -> int:
    """Has run completely when its first attempt's process is killed, and is not committed yet."""
    leave_effect()
    if current_task().attempt == 1:
        _die_when_finished(current_task().id)
    return number * number


@task(name="fault.leave", max_attempts=3)
def leave() -> None:
    """Ends its process at each attempt."""
    leave_effect()
    os._exit(LEAVES_WITH)


def leave_effect() -> None:
    """Commit a row for this run of this attempt, once, on a connection of this thread's; wait for an absent database."""
    row = (current_task().id, current_task().attempt, uuid4())
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            _connection().execute(
                "INSERT INTO effect (task_id, attempt, run) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                row,
            )
            return
        except (psycopg.OperationalError, psycopg.InterfaceError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _connection() -> psycopg.Connection[Any]:
    connection = getattr(_mine, "connection", None)
    if connection is None or connection.closed:
        connection = _mine.connection = psycopg.connect(
            **dsn.parameters("effects"), autocommit=True
        )
    return connection


def _die_when_finished(task_id: UUID) -> None:
    """The event is emitted on the worker's loop, before the committer gets its turn there."""

    def die(event: str, facts: dict[str, Any]) -> None:
        if event == "task.finished" and facts["id"] == task_id:
            os.kill(os.getpid(), signal.SIGKILL)

    events.subscribe(die)
