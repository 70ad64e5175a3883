"""What polling costs where nothing is remembered: one read for each poll, by the fastest way there is to do it here."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from asyncpoll.urls import urlpatterns as _ours
from tasks_app.api.guard import api_view
from tasks_app.api.representation import task_state
from tasks_app.api.responses import answer
from tasks_app.owned import owned
from tasks_app.store import Snapshot, read
from tasks_app.store.pool import loop_pool


@api_view("GET")
async def plain_poll(request: HttpRequest, task_id: UUID) -> HttpResponse:
    """The task as it is now."""
    row = await owned(_read(task_id))
    body = task_state(row) | {
        "should_continue_polling": not row.is_terminal,
        "recommended_client_backoff_ms": 1_000,
    }
    return answer(body)


async def _read(task_id: UUID) -> Snapshot:
    return (await (await loop_pool()).run(read([task_id])))[task_id]


# Of this name, so that it is served the lean way.
_plain = ([path("tasks/<uuid:task_id>/plain_poll", plain_poll)], "asyncpoll")

urlpatterns = [path("api/v1/", include(_plain, namespace="plain")), *_ours]
