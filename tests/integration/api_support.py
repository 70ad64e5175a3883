"""What the tests of the wire share: rows that no worker takes, and what a problem document has to be."""

from __future__ import annotations

import uuid
from typing import Any

import httpx

from tasks_app.api.identity import Identity
from tasks_app.models.task import new_task_id
from tasks_app.store import NewTask, enqueue
from tasks_app.wakeup.service import WakeupService
from tests.integration.clients import API

__all__ = ["API", "authenticate", "count_tasks", "is_problem", "mapped", "stored"]


async def stored(service: WakeupService, **changes: Any) -> uuid.UUID:
    """The id of a task that was just stored."""
    facts = {
        "id": new_task_id(),
        "name": "sample.add",
        "queue": "outside",
        "owner": "",
        "priority": 0,
        "args": "[]",
        "kwargs": "{}",
        "max_attempts": 3,
        "timeout_seconds": 600.0,
    }
    task = NewTask(**{**facts, **changes})
    await service.pool.run(enqueue([task]))
    return task.id


def is_problem(
    response: httpx.Response, status: int, kind: str, parameter: str | None = None
) -> str:
    """Is it a clear problem document? Gives its detail."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["type"] == f"/problems/{kind}"
    assert document["status"] == status
    assert len(document["detail"]) > 20
    assert "Traceback" not in response.text
    assert document.get("parameter") == parameter
    return document["detail"]


async def authenticate(request: Any) -> Identity | None:
    """`Authorization: Test <owner> [scope…]`."""
    kind, _, rest = request.headers.get("Authorization", "").partition(" ")
    if kind != "Test":
        return None
    owner, *scopes = rest.split()
    return Identity(owner, frozenset(scopes) or frozenset({"read", "submit", "cancel"}))


def mapped(settings: Any) -> None:
    """Have requests mapped by `authenticate`."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "AUTHENTICATE": f"{__name__}.authenticate"}


async def count_tasks() -> int:
    """How many tasks there are."""
    from tasks_app.models import Task

    return await Task.objects.acount()
