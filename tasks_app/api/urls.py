"""The API's routes. Mount them anywhere: `path("api/v1/", include("tasks_app.api.urls"))`."""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import path, re_path
from django.views.decorators.csrf import csrf_exempt

from asyncpoll.contract import Problem
from tasks_app.api import holds
from tasks_app.api.bundles import long_poll_many
from tasks_app.api.claims import claim_tasks
from tasks_app.api.guard import View, api_view, method_refused, problem_for
from tasks_app.api.responses import ProblemRaised, problem
from tasks_app.api.routes import api
from tasks_app.api.steps import take_step
from tasks_app.errors import TasksError

app_name = "asyncpoll"


@api_view("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
async def not_found(request: HttpRequest) -> HttpResponse:
    """Whatever else is under the API's prefix."""
    return problem(
        Problem.NOT_FOUND, 404, f"There is nothing at {request.path}; see docs/protocol.md."
    )


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


def _ninja_patterns() -> list[Any]:
    """django-ninja's routes that are ours, without the root page it adds."""
    routes: list[Any] = api.urls[0]
    patterns = [route for route in routes if route.name in ("submit", "cancel")]
    for pattern in patterns:
        pattern.callback = _with_problems(pattern.callback)
    return patterns


urlpatterns = [
    path("tasks/long_poll", long_poll_many, name="long_poll_many"),
    path("tasks/<str:task_id>/long_poll", holds.long_poll, name="long_poll"),
    path("tasks/<str:task_id>/events", holds.events, name="events"),
    path("tasks/<str:task_id>/status", holds.status, name="status"),
    path("tasks/<str:task_id>", holds.task, name="task"),
    path("tasks/<str:task_id>/steps", take_step, name="steps"),
    path("queues/<path:queue>/claim", claim_tasks, name="claim"),
    path("", (_ninja_patterns(), "ninja", "ninja")),
    re_path(r"", not_found),
]
