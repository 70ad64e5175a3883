"""An executor outside this code base, as the tests of /claim and /steps play it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tasks_app.serving.handler import get_asgi_application
from tests.external_tasks import QUEUE

API = "/api/v1"


class Executor:
    """Claims and reports, over HTTP."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def post(self, path: str, body: Any, **options: Any) -> httpx.Response:
        """One request, without credentials."""
        return await self._client.post(f"{API}{path}", json=body, **options)

    async def claim(self, claim_id: str, queue: str = QUEUE, **body: Any) -> dict[str, Any]:
        """A claim that is not held unless it says so."""
        body = {"claim_id": claim_id, "max_hold_seconds": 0, **body}
        response = await self.post(f"/queues/{queue}/claim", body)
        assert response.status_code == 200, response.text
        return response.json()

    def held_claim(self, claim_id: str, **body: Any) -> asyncio.Future[dict[str, Any]]:
        """A claim that is held, on its way."""
        return asyncio.ensure_future(self.claim(claim_id, **{"max_hold_seconds": 25, **body}))

    async def claim_one(self, claim_id: str = "one") -> dict[str, Any]:
        """The only task there is."""
        [task] = (await self.claim(claim_id))["tasks"]
        return task

    async def step(self, task: dict[str, Any], **body: Any) -> httpx.Response:
        """A report on a claimed task."""
        return await self.post(
            f"/tasks/{task['task_id']}/steps", {"lease_token": task["lease_token"], **body}
        )

    async def stepped(self, task: dict[str, Any], **body: Any) -> dict[str, Any]:
        """A report that is taken."""
        response = await self.step(task, **body)
        assert response.status_code == 200, response.text
        return response.json()


@asynccontextmanager
async def executing() -> AsyncIterator[Executor]:
    """An executor that talks to the whole application, in this process."""
    transport = httpx.ASGITransport(get_asgi_application(), client=("127.0.0.1", 50_000))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", timeout=40
    ) as client:
        yield Executor(client)
