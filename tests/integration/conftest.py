"""A client of the whole application, in this process."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from tasks_app.store import pool
from tasks_app.store.pool import close_loop_pool
from tasks_app.wakeup.service import WakeupService
from tests.integration.api_support import stored
from tests.integration.backend_support import NAMES, Ears, configure, receiving
from tests.integration.clients import connected


@pytest.fixture
async def client(service: WakeupService) -> AsyncIterator[httpx.AsyncClient]:
    """Sends requests as a neighbour on the loopback interface would."""
    async with connected() as made:
        yield made


_MAKES_READY = ("backend", "favour_indexes")


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of each statement that is sent through a pool: all of them, but for Django's own, the listener's, and what
    makes a connection ready, which the pool opens whenever it likes."""
    sent: list[str] = []
    execute = pool.execute

    async def counted(connection: Any, call: Any) -> Any:
        if call.statement not in _MAKES_READY:
            sent.append(call.statement)
        return await execute(connection, call)

    monkeypatch.setattr(pool, "execute", counted)
    return sent


@pytest.fixture
async def task_id(service) -> uuid.UUID:
    """A PENDING task that no worker takes."""
    return await stored(service)


@pytest.fixture
async def framework_project(settings: Any) -> AsyncIterator[None]:
    """A project of the framework's, with backends of ours."""
    configure(settings)
    yield
    # What a test reads after its worker's end opens the loop's connections again.
    await close_loop_pool()


@pytest.fixture
def ears() -> Iterator[Ears]:
    """Hears both signals of a worker during the test."""
    made = Ears()
    with receiving(made, *NAMES):
        yield made
