"""The API other than the holds."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import ValidationError
from ninja.parser import Parser

from asyncpoll.contract import JSON_MEDIA_TYPE, Problem
from tasks_app import conf
from tasks_app.api.guard import authorize, parse_task_id, problem_for
from tasks_app.api.idempotency import read_key
from tasks_app.api.identity import Identity, confirm, poll_ticket, require
from tasks_app.api.notifying import asked_for
from tasks_app.api.preferences import preferred_wait, wait_applied
from tasks_app.api.representation import etag, task_resource
from tasks_app.api.responses import ProblemRaised, answer, problem
from tasks_app.api.submission import Submission, prepare
from tasks_app.api.submitting import submit_task
from tasks_app.errors import TaskNotFound, TasksError
from tasks_app.events import emit
from tasks_app.owned import owned
from tasks_app.store import Snapshot, cancel, read, read_results
from tasks_app.store.pool import loop_pool
from tasks_app.traces import following

# Of a body; the largest kind there is has 9.
_MOST_MEMBERS = 50


class CheckedJson(Parser):
    """Bodies were decoded by `check_body`, whose problems django-ninja would turn into one that says nothing."""

    def parse_body(self, request: HttpRequest) -> Any:
        """The decoded body."""
        return request.json_body  # type: ignore[attr-defined]


def check_body(request: HttpRequest) -> None:
    """Decode the body of a POST. Raises ProblemRaised unless it is JSON, says so, and is not too large."""
    most = conf.current().MAX_BODY_BYTES
    if _declared_bytes(request) > most or len(request.body) > most:
        raise _refused(
            Problem.BODY_TOO_LARGE, 413, f"The body is larger than {most:,} bytes; send less."
        )
    if request.content_type != JSON_MEDIA_TYPE:
        # A page of another origin can send text/plain without asking; it can't send this.
        raise _refused(
            Problem.UNSUPPORTED_MEDIA_TYPE,
            415,
            f"Content-Type is {request.content_type!r}; send {JSON_MEDIA_TYPE}.",
        )
    request.json_body = _decoded(request.body)  # type: ignore[attr-defined]


def _declared_bytes(request: HttpRequest) -> int:
    declared = request.META.get("CONTENT_LENGTH") or "0"
    return int(declared[:19]) if declared.isdecimal() and declared.isascii() else 0


def _decoded(sent: bytes) -> Any:
    try:
        # Not orjson, which makes a float of an integer that needs more than 64 bits.
        body = json.loads(sent.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise _refused(Problem.INVALID_BODY, 400, f"The body is not JSON: {error}.") from None
    if isinstance(body, dict) and len(body) > _MOST_MEMBERS:
        # Each that is unknown would be an error of its own, and listing them all takes seconds.
        raise _refused(
            Problem.INVALID_BODY,
            422,
            f"The body has {len(body):,} members; there are none so many to send.",
        )
    return body


def _refused(kind: Problem, status: int, detail: str) -> ProblemRaised:
    return ProblemRaised(problem(kind, status, detail))


class Needs:
    """The scope of an operation, as its `auth`: asked for before the body is read, and once more before the answer leaves."""

    def __init__(self, scope: str, takes_body: bool = False) -> None:
        self._scope = scope
        self._takes_body = takes_body

    async def __call__(self, request: HttpRequest) -> Identity:
        """Who asks. Raises ProblemRaised with 401 or 403, or for a body that is not JSON."""
        identity = await authorize(request, self._scope)
        request.confirmed = partial(confirm, identity, self._scope)  # type: ignore[attr-defined]
        if self._takes_body:
            check_body(request)
        return identity


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON value")


api = NinjaAPI(
    title="asyncpoll", version="1", parser=CheckedJson(), docs_url=None, urls_namespace="ninja"
)


@api.post("/tasks", url_name="submit", auth=Needs("submit", takes_body=True))
async def submit(request: HttpRequest, submission: Submission) -> HttpResponse:
    """Store a task. 202 with its Location; 200 where it is over already, or an idempotency key has made it before."""
    identity: Identity = request.auth  # type: ignore[attr-defined]
    owner = identity.owner or ""
    if submission.notify is not None:
        require(identity, "notify")
    key = read_key(request, owner)
    with following(request.headers):
        new = await prepare(submission, owner, len(request.body))
    preferred = preferred_wait(request)
    asked = None if submission.notify is None else await asked_for(submission.notify, owner)
    made = await submit_task(new, key, preferred or 0.0, asked)
    headers: dict[str, str] = {"Location": f"{request.path.rstrip('/')}/{made.row.id}"}
    if preferred is not None:
        headers["Preference_Applied"] = wait_applied(made.window)
    if made.is_replayed:
        headers["Idempotent_Replayed"] = "true"
    if not made.row.is_terminal:
        headers["Retry_After"] = "1"
    return answer(
        {**task_resource(made.row, made.result), "poll_ticket": poll_ticket(made.row.id, owner)},
        200 if made.is_replayed or made.row.is_terminal else 202,
        ETag=etag(made.row),
        **headers,
    )


@api.post("/tasks/{task_id}/cancel", url_name="cancel", auth=Needs("cancel"))
async def cancel_task(request: HttpRequest, task_id: str) -> HttpResponse:
    """End a PENDING task at once, ask a RUNNING one to stop. Idempotent."""
    identity: Identity = request.auth  # type: ignore[attr-defined]
    row, result = await owned(_cancel(parse_task_id(task_id, identity), identity.owner))
    return answer(task_resource(row, result), ETag=etag(row))


@api.exception_handler(ProblemRaised)
def on_problem(request: HttpRequest, raised: ProblemRaised) -> HttpResponse:
    """A problem that a view or the parser made."""
    return raised.response


@api.exception_handler(TasksError)
def on_tasks_error(request: HttpRequest, error: TasksError) -> HttpResponse:
    """An error of ours."""
    return problem_for(error)


@api.exception_handler(ValidationError)
def on_validation_error(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """A body that is JSON but not a submission."""
    first = error.errors[0]
    where = ".".join(str(part) for part in first["loc"][2:]) or "body"
    return problem(Problem.INVALID_BODY, 422, f"{where}: {first['msg']}.", parameter=where)


@api.exception_handler(Exception)
def on_fault(request: HttpRequest, fault: Exception) -> HttpResponse:
    """A fault of ours, or of the project's own hook: for the log, and not for the client."""
    emit("request.failed", request=request, error=fault)
    return problem(
        Problem.INTERNAL,
        500,
        "The request failed here, not because of what you sent; the log says why.",
    )


async def _cancel(task_id: UUID, owner: str | None) -> tuple[Snapshot, str | None]:
    pool = await loop_pool()
    row = (await pool.run(read([task_id]))).get(task_id)
    if row is None or (owner is not None and row.owner != owner):
        raise TaskNotFound(task_id)
    if await pool.run(cancel(task_id, patient=False)) is not None:
        row = (await pool.run(read([task_id]))).get(task_id, row)
    if row.result_apart:
        return row, (await pool.run(read_results([task_id]))).get(task_id)
    return row, row.result
