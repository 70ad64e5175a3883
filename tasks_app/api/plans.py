"""GET …/plan: how to wait for tasks of one type, by how long they took."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.http import HttpRequest, HttpResponse

from tasks_app import catalogue
from tasks_app.api.guard import api_view
from tasks_app.api.identity import Identity, refuse_ticket
from tasks_app.api.query import name
from tasks_app.api.responses import answer
from tasks_app.errors import BadParameter
from tasks_app.insights.durations import Durations
from tasks_app.plans.book import Planned, book, unmeasured
from tasks_app.store import Sought, list_tasks
from tasks_app.store.pool import loop_pool


@api_view("GET", "HEAD", scope="read")
async def plan(request: HttpRequest, identity: Identity) -> HttpResponse:
    """What `manage.py pollplan` says of the type."""
    refuse_ticket(identity)
    task = name(request, "task")
    if task is None:
        raise BadParameter("task", "", "must name a task type, as it was declared")
    planned = await book.plan(task) if await _may_know(identity, task) else unmeasured(task)
    return answer(_document(planned))


async def _may_know(identity: Identity, task: str) -> bool:
    """A type that is not exposed can't be told from one that does not exist, except by who has tasks of it."""
    if identity.owner is None or catalogue.exposed(task) is not None:
        return True
    own = await (await loop_pool()).run(list_tasks(Sought(identity.owner, name=task), 1))
    return bool(own.tasks)


def _document(planned: Planned) -> dict[str, Any]:
    measured = planned.measured
    waited = Durations() if measured is None else measured.waited
    return {
        **asdict(planned.plan),
        **{f"queue_wait_p{percent}_ms": _shown(waited, percent) for percent in (50, 95, 99)},
        "measured_since": None if measured is None else measured.first,
        "relative_error": 0.0 if measured is None else measured.ran.relative_error,
    }


def _shown(durations: Durations, percent: int) -> float | None:
    found = durations.percentile(percent)
    return None if found is None else round(found, 3)
