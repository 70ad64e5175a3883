"""Our own server and worker for a browser, and an executor that ends tasks when a test says so."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.acceptance.processes import server, worker
from tests.external_tasks import QUEUE, render

API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Site:
    """A running server, at its port."""

    port: int
    client: httpx.Client

    @property
    def origin(self) -> str:
        """Where a browser finds it."""
        return f"http://127.0.0.1:{self.port}"

    def tasks(self, count: int = 1) -> list[Execution]:
        """That many tasks, submitted and claimed."""
        for _ in range(count):
            self.post("/tasks", task=render.name, kwargs={"pages": ["a.html"]})
        return self.claimed(count)

    def claimed(self, count: int) -> list[Execution]:
        """That many that were submitted before."""
        claim = secrets.token_hex(8)
        claimed = self.post(f"/queues/{QUEUE}/claim", claim_id=claim, limit=count)["tasks"]
        assert len(claimed) == count
        return [Execution(self, task["task_id"], task["lease_token"]) for task in claimed]

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        """A request that is not refused."""
        answer = self.client.post(f"{self.origin}{API}{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json()


@dataclass(frozen=True, slots=True)
class Execution:
    """A task that runs until the test ends it."""

    site: Site
    id: str
    token: str

    def report(self, progress: float, message: str) -> None:
        """A milestone."""
        self._step(progress=progress, message=message)

    def succeed(self, result: Any) -> None:
        """The end."""
        self._step(status="SUCCESS", result=result)

    def _step(self, **body: Any) -> None:
        self.site.post(f"/tasks/{self.id}/steps", lease_token=self.token, **body)


@contextmanager
def running(database_url: str, **environment: str) -> Iterator[Site]:
    """The project, served and with a worker."""
    patience = {"ASYNCPOLL_LEASE_SECONDS": "60"}
    with (
        server("daphne", database_url, **patience, **environment) as (port, _),
        worker(database_url),
    ):
        with httpx.Client() as client:
            yield Site(port, client)
