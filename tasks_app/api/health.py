"""Is this process alive, and may a load balancer send it requests?"""

from __future__ import annotations

import asyncio

from django.http import HttpRequest, HttpResponse

from tasks_app.api.guard import api_view
from tasks_app.api.responses import answer
from tasks_app.errors import StoreUnavailable
from tasks_app.hold.admission import admission
from tasks_app.owned import owned
from tasks_app.store import ping
from tasks_app.store.pool import loop_pool
from tasks_app.wakeup.service import current_service

# A database that needs longer to say yes is no use to a request either.
_PING_SECONDS = 1.0


@api_view("GET", "HEAD")
async def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the event loop turns."""
    return answer({"status": "alive"})


@api_view("GET", "HEAD")
async def readyz(request: HttpRequest) -> HttpResponse:
    """503 only while draining or without a database. A link or layer that is down costs time, not answers."""
    service = await current_service()
    database = await _database_answers()
    state = service.state
    ready = database and not admission.draining
    body = {
        "status": "draining" if admission.draining else "ready" if ready else "unavailable",
        "database": "up" if database else "down",
        "link": "up" if state.trusted else "down",
        "layer": "up" if state.layer else "down",
        "bridge": state.bridge,
        "held": admission.held,
    }
    return answer(body) if ready else answer(body, 503, Retry_After="2")


async def _database_answers() -> bool:
    try:
        async with asyncio.timeout(_PING_SECONDS):
            await owned(_ping())
    except (TimeoutError, StoreUnavailable):
        return False
    return True


async def _ping() -> None:
    await (await loop_pool()).run(ping())
