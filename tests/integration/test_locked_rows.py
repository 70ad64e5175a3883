"""A row that somebody keeps locked costs a request a second, and no connection for longer."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from tasks_app.api.identity import Identity
from tasks_app.store import dsn
from tests.external_tasks import QUEUE, anything
from tests.integration.api_support import API, is_problem, stored
from tests.integration.executors_support import executing
from tests.workers import look

pytestmark = pytest.mark.django_db(transaction=True)


@asynccontextmanager
async def locked(task_id: uuid.UUID | str) -> AsyncIterator[None]:
    """Somebody at a prompt has begun a transaction with this task, and gone for lunch."""
    async with await psycopg.AsyncConnection.connect(**dsn.parameters("lunch")) as connection:
        await connection.execute(
            "SELECT FROM tasks_app_task WHERE id = %s FOR UPDATE", [str(task_id)]
        )
        yield


def says_locked(response: Any) -> None:
    """It says so, and when to come back."""
    assert "locked" in is_problem(response, 503, "unavailable")
    assert response.headers["retry-after"] == "2"


async def test_a_cancel_says_that_the_row_is_locked(client, service):
    """Nothing was changed, and the same request ends the task once the row is free."""
    task_id = await stored(service)
    async with locked(task_id):
        says_locked(await client.post(f"{API}/tasks/{task_id}/cancel"))
    assert (await look(task_id)).version == 1
    response = await client.post(f"{API}/tasks/{task_id}/cancel")
    assert response.json()["status"] == "CANCELLED"


async def test_somebody_elses_locked_row_is_not_there(client, service, settings):
    """It is not waited for either: that would tell it from a missing one."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "AUTHENTICATE": f"{__name__}.everybody_is_bob"}
    foreign, his = await stored(service, owner="alice"), await stored(service, owner="bob")
    bob = {"Authorization": "bob"}
    async with locked(foreign), locked(his):
        for route, body in (("notify", {"inbox": True}), ("cancel", None)):
            response = await client.post(f"{API}/tasks/{foreign}/{route}", json=body, headers=bob)
            is_problem(response, 404, "task-not-found")
            says_locked(await client.post(f"{API}/tasks/{his}/{route}", json=body, headers=bob))


def everybody_is_bob(request: Any) -> Identity:
    """Whoever it is."""
    return Identity("bob")


async def test_a_step_and_a_repeated_claim_say_so_too(service):
    """Both would extend the lease."""
    await anything.aenqueue(1)
    async with executing() as executor:
        [task] = (await executor.claim("c1"))["tasks"]
        async with locked(task["task_id"]):
            says_locked(await executor.step(task, progress=0.5))
            again = {"claim_id": "c1", "max_hold_seconds": 0}
            says_locked(await executor.post(f"/queues/{QUEUE}/claim", again))
        assert (await executor.stepped(task, progress=0.5))["version"] == 3


async def test_patience_ends_with_the_statement(client, service):
    """The connection goes back to the pool as it came: others of its users wait as long as they like."""
    task_id = await stored(service)
    async with locked(task_id):
        await client.post(f"{API}/tasks/{task_id}/cancel")
    async with service.pool.transaction() as transaction:
        cursor = await transaction._connection.execute("SHOW lock_timeout")
        assert await cursor.fetchone() == ("0",)
