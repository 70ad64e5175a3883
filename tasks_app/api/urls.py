"""The API's routes. Mount them anywhere: `path("api/v1/", include("tasks_app.api.urls"))`."""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, path, re_path, reverse
from django.views.decorators.csrf import csrf_exempt

from asyncpoll.contract import Problem
from tasks_app.api import holds
from tasks_app.api.bundles import long_poll_many
from tasks_app.api.centre import acknowledge_entry, inbox, notify_task
from tasks_app.api.claims import claim_tasks
from tasks_app.api.docs import asset, docs, openapi
from tasks_app.api.guard import View, api_view, method_refused, problem_for
from tasks_app.api.lists import tasks
from tasks_app.api.plans import plan
from tasks_app.api.probe import probe
from tasks_app.api.responses import ProblemRaised, problem
from tasks_app.api.routes import api
from tasks_app.api.steps import take_step
from tasks_app.errors import TasksError

app_name = "asyncpoll"


@api_view("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
async def not_found(request: HttpRequest) -> HttpResponse:
    """Whatever else is under the API's prefix."""
    return problem(
        Problem.NOT_FOUND, 404, f"There is nothing at {request.path}; see {_described_at()}."
    )


def _described_at() -> str:
    try:
        return reverse(f"{app_name}:docs")
    except NoReverseMatch:
        return "…/docs, below the address of the API"  # included under a namespace of the project's own


def _with_problems(view: View) -> View:
    """A view of django-ninja whose 405s are problem documents, and whose answers leave if they still may."""

    @csrf_exempt
    @transaction.non_atomic_requests
    @wraps(view)
    async def answered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = await view(request, *args, **kwargs)
        if response.status_code == 405:
            return method_refused(request, f"{response.headers['Allow']}, OPTIONS")
        try:
            if (confirmed := getattr(request, "confirmed", None)) is not None:
                await confirmed()
        except ProblemRaised as raised:
            return raised.response
        except TasksError as error:
            return problem_for(error)
        return response

    return answered


def _by_method(readers: View, others: View) -> View:
    """One path whose GET and HEAD are not django-ninja's."""

    @csrf_exempt
    @transaction.non_atomic_requests
    async def answered(request: HttpRequest, **arguments: Any) -> HttpResponse:
        reads = request.method in ("GET", "HEAD")
        response = await (readers if reads else others)(request, **arguments)
        if response.status_code in (204, 405):
            allowed = f"GET, HEAD, {response.headers['Allow']}"
            return method_refused(request, allowed)
        return response

    return answered


# django-ninja's routes that are ours, without the root page it adds.
_routes: list[Any] = api.urls[0]
_ninja: dict[str, View] = {
    route.name: _with_problems(route.callback)
    for route in _routes
    if route.name in ("submit", "cancel")
}


urlpatterns = [
    path("tasks/long_poll", long_poll_many, name="long_poll_many"),
    path("tasks/<str:task_id>/long_poll", holds.long_poll, name="long_poll"),
    path("tasks/<str:task_id>/events", holds.events, name="events"),
    path("tasks/<str:task_id>/status", holds.status, name="status"),
    path("tasks/<str:task_id>", holds.task, name="task"),
    path("tasks/<str:task_id>/steps", take_step, name="steps"),
    path("tasks/<str:task_id>/notify", notify_task, name="notify"),
    path("inbox", inbox, name="inbox"),
    path("inbox/<str:entry_id>/ack", acknowledge_entry, name="acknowledge"),
    path("openapi.json", openapi, name="openapi"),
    path("docs", docs, name="docs"),
    path("docs/<str:name>", asset, name="docs_asset"),
    path("plan", plan, name="plan"),
    path("probe", probe, name="probe"),
    path("queues/<path:queue>/claim", claim_tasks, name="claim"),
    path("tasks/<str:task_id>/cancel", _ninja["cancel"], name="cancel"),
    path("tasks", _by_method(tasks, _ninja["submit"]), name="tasks"),
    re_path(r"", not_found),
]
