"""GET …/tasks/long_poll: one held request for many tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from tasks_app import errors
from tasks_app.api.guard import api_view, parse_task_id, problem_inside
from tasks_app.api.identity import Identity
from tasks_app.api.limiting import Asking, limited
from tasks_app.api.query import hold_seconds, single, values
from tasks_app.api.representation import add_hold, task_state
from tasks_app.api.responses import answer
from tasks_app.hold.bundles import BundleAnswer, BundleAsked, Moved, wait_for_bundle
from tasks_app.hold.shortpolls import Brought
from tasks_app.hold.waiting import deleted
from tasks_app.hold.window import parse_milliseconds, parse_version

MOST_TASKS = 100
MOST_LINGER_MS = 5_000
_SHOWN_CHARACTERS = 60
_NOBODYS = UUID(int=0)

Problems = list[dict[str, Any]]


@dataclass(slots=True)
class _Asked:
    """The tasks that can be waited for, with the version known of each, and the problems of the others."""

    known: dict[UUID, int] = field(default_factory=dict)
    problems: Problems = field(default_factory=list)


@api_view("GET", "HEAD", scope="read", most_tickets=MOST_TASKS)
async def long_poll_many(request: HttpRequest, identity: Identity) -> HttpResponse:
    """Answers once one of the tasks has moved, after lingering for others that do."""
    asked = _read_tasks(values(request, "task"), identity)
    text = single(request, "linger_ms")
    linger_ms = 0 if text is None else parse_milliseconds(text, "linger_ms")
    held = await wait_for_bundle(
        BundleAsked(
            asked.known,
            hold_seconds(request, "max_hold_seconds"),
            min(linger_ms, MOST_LINGER_MS) / 1000,
            identity.owner,
            identity.account,
        )
    )
    refusal = limited(request, identity, _asking(held, asked.known))
    return refusal or answer(_body(held, asked.problems))


def _read_tasks(given: list[str], identity: Identity) -> _Asked:
    """What was asked for. An id given twice is asked for once, with the lower version. Raises BadParameter."""
    if not 1 <= len(given) <= MOST_TASKS:
        raise errors.BadParameter(
            "task", f"{len(given)} tasks", f"must be given 1 to {MOST_TASKS} times: task=ID:VERSION"
        )
    asked = _Asked()
    for text in given:
        try:
            identifier, _, version = text.partition(":")
            task_id = parse_task_id(identifier, identity)
            known = parse_version(version, "version") if version else 0
            asked.known[task_id] = min(known, asked.known.get(task_id, known))
        except errors.TasksError as error:
            asked.problems.append(_problem(text, error))
    return asked


def _problem(task: object, error: errors.TasksError) -> dict[str, Any]:
    return {"task": str(task)[:_SHOWN_CHARACTERS], **problem_inside(error)}


def _asking(held: BundleAnswer, known: dict[UUID, int]) -> Asking:
    moved = {change.row.id: change.row.version for change in held.moved}
    # Ids that are nobody's count as one: with a new one each time, every request would be about something else.
    there = known.keys() - set(held.missing)
    brought = [
        Brought(task_id, known[task_id], moved.get(task_id, known[task_id])) for task_id in there
    ]
    return Asking(held.window, held.outcome, held.cause, brought or (Brought(_NOBODYS, 0, 0),))


def _body(held: BundleAnswer, problems: Problems) -> dict[str, Any]:
    body: dict[str, Any] = {
        "tasks": [_task(moved) for moved in held.moved],
        "problems": [*problems, *_problems_of(held)],
        "outcome": held.outcome,
        "should_continue_polling": not held.is_over,
    }
    add_hold(body, held)
    return body


def _task(moved: Moved) -> dict[str, Any]:
    body = task_state(moved.row, moved.result)
    body["outcome"] = moved.outcome
    if moved.reset:
        body["reset"] = True
    body["should_continue_polling"] = not moved.row.is_terminal
    return body


def _problems_of(held: BundleAnswer) -> Iterable[dict[str, Any]]:
    for task_id in held.missing:
        yield _problem(task_id, errors.TaskNotFound(task_id))
    for task_id in held.gone:
        yield _problem(task_id, deleted(task_id))
    for task_id in held.unread:
        yield _problem(task_id, errors.StoreUnavailable())
