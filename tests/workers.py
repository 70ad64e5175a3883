"""Workers inside a test's own event loop, and looks at what they did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import psycopg

from tasks_app import events, store
from tasks_app.store import Snapshot, dsn
from tasks_app.store.pool import loop_pool
from tasks_app.tasks import Task, TaskHandle
from tasks_app.upkeep import Upkeep
from tasks_app.worker.process import Options, Worker
from tests import sample_tasks
from tests.support import aeventually


@asynccontextmanager
async def working(**options: Any) -> AsyncIterator[Worker]:
    """A worker that runs and hears notifications meanwhile. At the end what still runs is released."""
    options.setdefault("grace_seconds", 0.0)
    heard: list[str] = []
    unsubscribe = events.subscribe(lambda event, facts: heard.append(event))
    with sample_tasks.fresh_gates():
        worker = Worker(Options(**options), Upkeep)
        await worker.start()
        try:
            await aeventually(lambda: "listener.connected" in heard)
            unsubscribe()
            yield worker
        finally:
            await worker.shut_down()


async def look(task: TaskHandle | UUID) -> Snapshot:
    """The task as it is now."""
    task_id = task if isinstance(task, UUID) else task.id
    return (await (await loop_pool()).run(store.read([task_id])))[task_id]


async def ended(task: TaskHandle | UUID) -> Snapshot:
    """The task once it is over."""

    async def over() -> Snapshot | None:
        snapshot = await look(task)
        return snapshot if snapshot.is_terminal else None

    return await aeventually(over)  # type: ignore[return-value]


async def run_one(task: Task[..., Any], *args: Any, **kwargs: Any) -> Snapshot:
    """Enqueue a task and wait for its end."""
    return await ended(await task.aenqueue(*args, **kwargs))


async def history(task: TaskHandle | UUID) -> list[tuple[int, str, float | None, str]]:
    """Version, kind, progress and message of each history row."""
    task_id = task if isinstance(task, UUID) else task.id
    return await fetch(
        "SELECT version, kind, progress, message FROM tasks_app_taskevent WHERE task_id = %s ORDER BY version",
        task_id,
    )


async def fetch(statement: str, *params: Any) -> list[Any]:
    """The rows of a statement, on a connection of its own."""
    async with await psycopg.AsyncConnection.connect(
        **dsn.parameters("test"), autocommit=True
    ) as connection:
        cursor = await connection.execute(statement.encode(), params)
        return await cursor.fetchall() if cursor.description else []
