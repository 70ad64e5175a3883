"""What every view of the API does before and after: methods, identity, errors as problem documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from asyncpoll.contract import Problem
from tasks_app import errors
from tasks_app.api.identity import Identity, confirm, identify, require
from tasks_app.api.responses import ProblemRaised, answer, problem, problem_document
from tasks_app.limits import parse_id

# Any, as the stubs of Django know no asynchronous views.
View = Callable[..., Any]

_PROBLEMS = (ProblemRaised, errors.TasksError)


def api_view(
    *methods: str, scope: str | None = None, most_tickets: int = 1
) -> Callable[[View], View]:
    """Make `view(request, identity, …)` a view of the API for `methods`; `scope` None asks for no credentials.

    A scope may name an argument of the view's: "claim:{queue}". It is asked for before, and again when an answer that
    took its time is about to leave. Problems are returned, never raised: an exception that reaches Django costs a thread.
    """
    allow = ", ".join((*methods, "OPTIONS"))

    def decorate(view: View) -> View:
        @wraps(view)
        async def guarded(request: HttpRequest, **arguments: Any) -> HttpResponse:
            if request.method not in methods:
                return method_refused(request, allow)
            try:
                if scope is None:
                    return await view(request, **arguments)
                needed = scope.format_map(arguments)
                identity = await authorize(request, needed, most_tickets)
                try:
                    response = await view(request, identity=identity, **arguments)
                except _PROBLEMS as error:
                    # What became of a task is an answer that may have taken its time, too.
                    response = _answer_of(error)
                await confirm(identity, needed)
                return response
            except _PROBLEMS as error:
                return _answer_of(error)

        # Authorization is by header, so there is no ambient authority to forge a request with; and a transaction
        # around an async view is an error in Django.
        # The decorator would wrap it in one more coroutine, which each held request would keep.
        guarded.csrf_exempt = True  # type: ignore[attr-defined]
        return transaction.non_atomic_requests(guarded)

    return decorate


def _answer_of(error: ProblemRaised | errors.TasksError) -> HttpResponse:
    return error.response if isinstance(error, ProblemRaised) else problem_for(error)


async def authorize(request: HttpRequest, scope: str, most_tickets: int = 1) -> Identity:
    """Who asks, with the scope. Raises ProblemRaised with 401 or 403."""
    identity = await identify(request, most_tickets)
    require(identity, scope)
    return identity


def method_refused(request: HttpRequest, allow: str) -> HttpResponse:
    """204 for OPTIONS, 405 for the rest."""
    if request.method == "OPTIONS":
        response = answer(None, 204, Allow=allow)
        del response.headers["Content-Type"], response.headers["Content-Length"]
        return response
    return problem(
        Problem.METHOD_NOT_ALLOWED,
        405,
        f"{request.method} is not allowed here; use {allow}.",
        Allow=allow,
    )


_KINDS: dict[type[errors.TasksError], tuple[Problem, int]] = {
    errors.BadParameter: (Problem.INVALID_PARAMETER, 400),
    errors.TaskNotFound: (Problem.TASK_NOT_FOUND, 404),
    errors.TaskGone: (Problem.TASK_GONE, 410),
    errors.LeaseLost: (Problem.LEASE_LOST, 409),
    errors.UnknownTask: (Problem.UNKNOWN_TASK_TYPE, 422),
    errors.InvalidArguments: (Problem.INVALID_ARGUMENTS, 422),
    errors.NotJson: (Problem.INVALID_ARGUMENTS, 422),
    errors.OutOfBounds: (Problem.OUT_OF_BOUNDS, 422),
    errors.NotifyRefused: (Problem.NOTIFY_REFUSED, 422),
    errors.KeyReused: (Problem.IDEMPOTENCY_KEY_REUSED, 422),
    errors.ClaimedTooOften: (Problem.TOO_MANY_REQUESTS, 429),
    errors.TooManyHeld: (Problem.OVERLOADED, 503),
    errors.StoreUnavailable: (Problem.UNAVAILABLE, 503),
    errors.RowLocked: (Problem.UNAVAILABLE, 503),
    errors.Unmigrated: (Problem.UNAVAILABLE, 503),
}
# A busy or absent server, or one that is asked too often, wants this much patience, in seconds.
_RETRY_AFTER = {
    errors.ClaimedTooOften: "1",
    errors.TooManyHeld: "5",
    errors.StoreUnavailable: "2",
    errors.RowLocked: "2",
    errors.Unmigrated: "2",
}


def problem_for(error: errors.TasksError) -> HttpResponse:
    """The problem document for an error of ours; one that is nobody's business outside is raised again."""
    kind, status, detail = _described(error)
    headers = {"Retry_After": _RETRY_AFTER[type(error)]} if type(error) in _RETRY_AFTER else {}
    return problem(kind, status, detail, parameter=getattr(error, "parameter", None), **headers)


def problem_inside(error: errors.TasksError) -> dict[str, Any]:
    """The same as a part of an answer, where one of many things that were asked for can't be answered."""
    return problem_document(*_described(error))


def _described(error: errors.TasksError) -> tuple[Problem, int, str]:
    if type(error) not in _KINDS:
        raise error
    # What the driver says names hosts and users, and what the server says, tables.
    away = type(error) in (errors.StoreUnavailable, errors.Unmigrated)
    detail = "The database did not answer in time; try again." if away else str(error)
    return *_KINDS[type(error)], detail


def parse_task_id(text: str, identity: Identity) -> UUID:
    """The id in a path. Raises BadParameter for what is no id, TaskNotFound for what the identity may not see."""
    try:
        task_id = parse_id(text)
    except ValueError:
        raise errors.BadParameter(
            "task_id",
            text,
            "must be a task's id: a UUID, written as in the Location of the answer that accepted it",
        ) from None
    if not identity.may_see(task_id):
        raise errors.TaskNotFound(task_id)
    return task_id
