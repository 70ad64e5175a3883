"""Every operation of the API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from tasks_app.api.claims import ClaimBody
from tasks_app.api.notices import NotifyBody
from tasks_app.api.openapi import parameters as by
from tasks_app.api.steps import StepBody
from tasks_app.api.submission import Submission


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `answers` are shapes by status, None: no body; `problems` are other statuses.

    `says` is what an answer means, by status. `scope` None asks for no credentials; `ticket`: a poll ticket will do as well.
    """

    name: str
    method: str
    path: str
    summary: str
    answers: dict[int, str | None]
    says: dict[int, str]
    problems: tuple[int, ...] = ()
    parameters: tuple[by.Parameter, ...] = ()
    body: type[BaseModel] | None = None
    scope: str | None = None
    ticket: bool = False
    headers: dict[int, tuple[str, ...]] = field(default_factory=dict)
    tag: str = "tasks"


def _reads(name: str, path: str, summary: str, **facts: Any) -> Operation:
    """A GET that holds, about one task."""
    more = facts.pop("parameters", ())
    return Operation(
        name,
        "get",
        path,
        summary,
        problems=(400, 401, 403, 404, 405, 410, 429, 503),
        parameters=(by.TASK_ID, *more),
        scope="read",
        ticket=True,
        **facts,
    )


OPERATIONS = (
    Operation(
        "submit",
        "post",
        "/tasks",
        "Submit a task",
        {202: "Submitted", 200: "Submitted"},
        {
            202: "The task is stored, and not over yet.",
            200: "The task was over within the hold of `Prefer: wait`, or the idempotency key had made it before: then "
            "`Idempotent-Replayed` says so, and this is the task as it is now.",
        },
        (400, 401, 403, 405, 410, 413, 415, 422, 429, 503),
        (by.IDEMPOTENCY_KEY, by.PREFER),
        Submission,
        "submit",
        headers={
            202: ("Location", "Retry-After", "ETag", "Preference-Applied"),
            200: ("Location", "ETag", "Idempotent-Replayed", "Preference-Applied"),
        },
    ),
    Operation(
        "list",
        "get",
        "/tasks",
        "List tasks, newest first",
        {200: "TaskList"},
        {200: "A page of tasks, and where the next one begins."},
        (400, 401, 403, 405, 429, 503),
        (by.STATUS, by.NAME, by.OF_QUEUE, by.CURSOR, by.LIMIT),
        scope="read",
    ),
    Operation(
        "long_poll_many",
        "get",
        "/tasks/long_poll",
        "Wait until one of many tasks changes",
        {200: "LongPollMany"},
        {200: "The tasks that moved, or none when the hold ran out; `outcome` says which."},
        (400, 401, 403, 405, 429, 503),
        (by.MANY, by.LINGER, by.HOLD),
        scope="read",
        ticket=True,
    ),
    _reads(
        "task",
        "/tasks/{task_id}",
        "The task; with Prefer and If-None-Match, once it has changed",
        answers={200: "Task", 304: None},
        says={
            200: "The task as it is now.",
            304: "The version is still the one of `If-None-Match`, at once or when the hold ran out.",
        },
        parameters=(by.IF_NONE_MATCH, by.PREFER),
        headers={200: ("ETag", "Preference-Applied"), 304: ("ETag", "Preference-Applied")},
    ),
    _reads(
        "long_poll",
        "/tasks/{task_id}/long_poll",
        "Wait until a task changes",
        answers={200: "LongPoll"},
        says={200: "The task changed, is over, or the hold ran out; `outcome` says which."},
        parameters=(by.KNOWN, by.HOLD),
        headers={200: ("ETag",)},
    ),
    _reads(
        "status",
        "/tasks/{task_id}/status",
        "Wait until a task is over",
        answers={200: "LongPoll"},
        says={200: "The task is over, or the hold ran out; `outcome` says which."},
        parameters=(by.WAIT, by.TIMEOUT),
        headers={200: ("ETag",)},
    ),
    _reads(
        "events",
        "/tasks/{task_id}/events",
        "Wait for milestones, and be told each since the last answer",
        answers={200: "Events"},
        says={200: "Each milestone after the one named, oldest first; none when the hold ran out."},
        parameters=(by.AFTER, by.HOLD),
        headers={200: ("ETag",)},
    ),
    Operation(
        "cancel",
        "post",
        "/tasks/{task_id}/cancel",
        "Cancel a task: at once while it is PENDING, otherwise by asking",
        {200: "Task"},
        {200: "The task: CANCELLED, asked to stop, or over before."},
        (400, 401, 403, 404, 405, 429, 503),
        (by.TASK_ID,),
        scope="cancel",
        headers={200: ("ETag",)},
    ),
    Operation(
        "plan",
        "get",
        "/plan",
        "How to wait for tasks of a type, by how long they took",
        {200: "Plan"},
        {200: "What was measured, and what follows from it; null where that was too little."},
        (400, 401, 403, 405, 429, 503),
        (by.OF_TYPE,),
        scope="read",
    ),
    Operation(
        "notify",
        "post",
        "/tasks/{task_id}/notify",
        "Be told of a task's end, in the inbox or by a webhook",
        {202: "Promised"},
        {202: "The end will be told there, at once if it is over; asked before or not."},
        (400, 401, 403, 404, 405, 413, 415, 422, 503),
        (by.TASK_ID,),
        NotifyBody,
        "notify",
        tag="message centre",
    ),
    Operation(
        "inbox",
        "get",
        "/inbox",
        "What ended and was not acknowledged, held while there is nothing",
        {200: "Inbox"},
        {200: "The oldest entries, or none when the hold ran out; `outcome` says which."},
        (400, 401, 403, 405, 429, 503),
        (by.HOLD,),
        scope="notify",
        tag="message centre",
    ),
    Operation(
        "acknowledge",
        "post",
        "/inbox/{entry_id}/ack",
        "Take an entry off the inbox's list",
        {200: "Acknowledged"},
        {200: "It is listed no more; asked before or not."},
        (400, 401, 403, 404, 405, 503),
        (by.ENTRY_ID,),
        scope="notify",
        tag="message centre",
    ),
    Operation(
        "claim",
        "post",
        "/queues/{queue}/claim",
        "Take work, held until there is some",
        {200: "Claimed"},
        {
            200: "The tasks that are the caller's now, each with its lease; none when the hold ran out."
        },
        (400, 401, 403, 405, 413, 415, 422, 429, 503),
        (by.QUEUE,),
        ClaimBody,
        "claim:{queue}",
        tag="executors",
    ),
    Operation(
        "steps",
        "post",
        "/tasks/{task_id}/steps",
        "Report on a task that was claimed; its lease token is all that this needs",
        {200: "Standing"},
        {200: "It is stored, and the lease extended; `repeated` where it had been said before."},
        (400, 403, 404, 405, 409, 410, 413, 415, 422, 503),
        (by.TASK_ID,),
        StepBody,
        tag="executors",
    ),
)
