"""Plain Django under ASGI: an async view that takes a channel for each request, on the in-memory layer.

Without middleware and without a database, which is kind to it.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from typing import Any
from uuid import UUID

from channels.layers import get_channel_layer
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import path

settings.configure(
    ALLOWED_HOSTS=["*"],
    SECRET_KEY=secrets.token_hex(),
    ROOT_URLCONF=__name__,
    CHANNEL_LAYERS={"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}},
)

versions: dict[UUID, int] = {}
held = 0


async def begin(request: HttpRequest) -> HttpResponse:
    """Tasks begin to run."""
    versions.update((task_id, 2) for task_id in _ids(request))
    return _json({"tasks": len(versions)})


async def finish(request: HttpRequest) -> HttpResponse:
    """Tasks end."""
    return _json({"at": [await _end(task_id) for task_id in _ids(request)]})


async def readyz(request: HttpRequest) -> HttpResponse:
    """How many requests are held."""
    return _json({"held": held})


async def long_poll(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """Answer once the version differs, or the hold runs out."""
    if task_id not in versions:
        raise Http404
    known = int(request.GET.get("client_known_version", 0))
    began = time.monotonic()
    woken = await _changed(task_id, known, float(request.GET.get("max_hold_seconds", 25)))
    return _json(_answer(task_id, woken, time.monotonic() - began))


async def _end(task_id: UUID) -> float:
    versions[task_id] = 3
    at = time.monotonic()
    await get_channel_layer().group_send(f"task.{task_id}", {"type": "task.changed"})
    return at


async def _changed(task_id: UUID, known: int, within: float) -> bool:
    """Join the task's group, look, and wait for a message; False if none came."""
    global held
    layer, group = get_channel_layer(), f"task.{task_id}"
    channel = await layer.new_channel()
    await layer.group_add(group, channel)
    held += 1
    try:
        if versions[task_id] == known:
            async with asyncio.timeout(within):
                await layer.receive(channel)
        return True
    except TimeoutError:
        return False
    finally:
        held -= 1
        await layer.group_discard(group, channel)


def _answer(task_id: UUID, woken: bool, held_seconds: float) -> dict[str, Any]:
    over = versions[task_id] == 3
    return {
        "task_id": str(task_id),
        "status": "SUCCESS" if over else "RUNNING",
        "version": versions[task_id],
        "outcome": "TERMINAL" if over else "CHANGED" if woken else "STILL_RUNNING",
        "should_continue_polling": not over,
        "hold_duration_ms": round(held_seconds * 1000, 1),
    }


def _ids(request: HttpRequest) -> list[UUID]:
    return [UUID(text) for text in json.loads(request.body)["ids"]]


def _json(payload: dict[str, Any]) -> HttpResponse:
    response = JsonResponse(payload)
    response["Content-Length"] = len(response.content)
    return response


urlpatterns = [
    path("tasks", begin),
    path("finish", finish),
    path("readyz", readyz),
    path("api/v1/tasks/<uuid:task_id>/long_poll", long_poll),
]
application = get_asgi_application()
