"""What tests of waiting for many tasks share."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import httpx

from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tasks_app.store import NewTask, enqueue
from tasks_app.wakeup.service import WakeupService
from tests.integration.api_support import API
from tests.support import aeventually


async def several(service: WakeupService, count: int) -> list[UUID]:
    """So many tasks that no worker takes."""
    tasks = [
        NewTask(new_task_id(), "sample.add", "outside", "", 0, "[]", "{}", 3, 600.0)
        for _ in range(count)
    ]
    await service.pool.run(enqueue(tasks))
    return [task.id for task in tasks]


def address(*tasks: Any, **parameters: Any) -> str:
    """Where they are waited for."""
    given = [f"task={task}" for task in tasks]
    return f"{API}/tasks/long_poll?" + "&".join(
        [*given, *(f"{name}={value}" for name, value in parameters.items())]
    )


async def poll(client: httpx.AsyncClient, *tasks: Any, **parameters: Any) -> Any:
    """The answer, decoded."""
    response = await client.get(address(*tasks, **parameters))
    assert response.status_code == 200, response.text
    return response.json()


async def held(client: httpx.AsyncClient, *tasks: Any, **parameters: Any) -> asyncio.Task[Any]:
    """A poll that is held already, with every row read."""
    before = admission.held
    asked = asyncio.ensure_future(poll(client, *tasks, **parameters))
    await aeventually(lambda: admission.held == before + 1)
    return asked


def moved(body: Any) -> dict[str, int]:
    """The version of each task that an answer has."""
    return {task["task_id"]: task["version"] for task in body["tasks"]}


def bundles_of(service: WakeupService) -> list[Any]:
    """Those that wait."""
    return list({id(w): w for t in service.hub.topics.values() for w in t.waiters}.values())


def bundle_of(service: WakeupService) -> Any:
    """The one that is held."""
    (bundle,) = bundles_of(service)
    return bundle
