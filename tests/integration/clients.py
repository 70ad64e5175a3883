"""A client of the whole application, in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from tasks_app.hold.shortpolls import short_polls
from tasks_app.serving.handler import get_asgi_application

API = "/api/v1"


@asynccontextmanager
async def connected(
    application: Any = None, client_address: str = "127.0.0.1", **options: Any
) -> AsyncIterator[httpx.AsyncClient]:
    """Talk to `application`, the project's own if none is given, as if from `client_address`."""
    short_polls._buckets.clear()
    transport = httpx.ASGITransport(
        application or get_asgi_application(), client=(client_address, 50_000)
    )
    options = {"base_url": "http://localhost", "timeout": 40, **options}
    async with httpx.AsyncClient(transport=transport, **options) as client:
        yield client
