"""Is this process alive, and may a load balancer send it requests?"""

from __future__ import annotations

import asyncio

from django.http import HttpRequest, HttpResponse

from tasks_app.api.guard import api_view
from tasks_app.api.responses import answer
from tasks_app.errors import NotMigrated, StoreUnavailable
from tasks_app.hold.admission import admission
from tasks_app.owned import owned
from tasks_app.store.migrated import arefuse_unmigrated
from tasks_app.store.pool import loop_pool
from tasks_app.wakeup.service import current_service

# A database that needs longer to say yes is no use to a request either.
_ANSWER_SECONDS = 1.0


@api_view("GET", "HEAD")
async def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the event loop turns."""
    return answer({"status": "alive"})


@api_view("GET", "HEAD")
async def readyz(request: HttpRequest) -> HttpResponse:
    """503 only while draining or without a database that was migrated. A link or layer that is down costs time, not answers."""
    service = await current_service()
    database, reason = await _database()
    state = service.state
    ready = database == "up" and not admission.draining
    body = {
        "status": "draining" if admission.draining else "ready" if ready else "unavailable",
        "database": database,
        "link": "up" if state.trusted else "down",
        "layer": "up" if state.layer else "down",
        "bridge": state.bridge,
        "held": admission.held,
        **({"reason": reason} if reason else {}),
    }
    return answer(body) if ready else answer(body, 503, Retry_After="2")


async def _database() -> tuple[str, str]:
    """Its state, and what to do about it."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await owned(_look())
    except (TimeoutError, StoreUnavailable):
        return "down", ""
    except NotMigrated as error:
        return "not migrated", str(error)
    return "up", ""


async def _look() -> None:
    await arefuse_unmigrated(await loop_pool())
