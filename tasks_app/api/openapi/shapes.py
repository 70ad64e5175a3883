"""What goes over the wire, as JSON schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from asyncpoll.contract import ClaimOutcome, DeliveryState, Outcome, Problem, Status
from tasks_app.models.status import EventKind

Shape = dict[str, Any]

TEXT: Shape = {"type": "string"}
FLAG: Shape = {"type": "boolean"}
COUNT: Shape = {"type": "integer", "minimum": 0}
VERSION: Shape = {"type": "integer", "minimum": 1}
MILLISECONDS: Shape = {"type": "number", "minimum": 0}
SECONDS: Shape = {"type": "number", "exclusiveMinimum": 0}
MOMENT: Shape = {"type": "string", "format": "date-time"}
IDENTIFIER: Shape = {"type": "string", "format": "uuid"}
ANYTHING: Shape = {}


def reference(name: str) -> Shape:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def listed(items: Shape) -> Shape:
    """A list of so many."""
    return {"type": "array", "items": items}


def optional(shape: Shape) -> Shape:
    """That, or null."""
    return {"anyOf": [shape, {"type": "null"}]}


def described(shape: Shape, text: str) -> Shape:
    """That, with a word on what it means."""
    return {**shape, "description": text}


def structure(fields: Mapping[str, Shape], *, may_lack: tuple[str, ...] = ()) -> Shape:
    """An object; clients have to put up with fields that a later release adds."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in may_lack],
    }


def words(known: Iterable[str], text: str) -> Shape:
    """One of those words; StrEnum classes are such words."""
    return described({"type": "string", "enum": [str(word) for word in known]}, text)


_FRACTION = optional({"type": "number", "minimum": 0, "maximum": 1})
_FAILURE = optional(reference("Failure"))
_SUMMARY = {
    "task_id": IDENTIFIER,
    "task": described(TEXT, "The name it was declared with."),
    "status": reference("Status"),
    "version": described(VERSION, "Grows by one with each visible change: the client's cursor."),
    "progress": _FRACTION,
    "message": TEXT,
    "attempt": COUNT,
    "error": described(_FAILURE, "With FAILED only; never a traceback."),
    "stalled": described(FLAG, "RUNNING, but whoever ran it has stopped its heartbeat."),
}
_STATE = {**_SUMMARY, "result": described(ANYTHING, "With SUCCESS only.")}
_TIMES = {
    "queue": TEXT,
    "cancel_requested": FLAG,
    "created_at": MOMENT,
    "started_at": optional(MOMENT),
    "finished_at": optional(MOMENT),
}
_ANSWERED = {
    "outcome": reference("Outcome"),
    "should_continue_polling": FLAG,
    "reset": described(FLAG, "The client's version is higher than any that the task has had."),
}
_HELD = {
    "recommended_client_backoff_ms": described(COUNT, "Wait so long before the next request."),
    "hold_duration_ms": MILLISECONDS,
    "hold_granted_ms": COUNT,
    "client_read_timeout_ms": described(COUNT, "Give the HTTP client at least this read timeout."),
}
_PROBLEM = {
    "type": words(Problem, "Stable; a relative reference."),
    "title": TEXT,
    "status": {"type": "integer", "minimum": 400, "maximum": 599},
    "detail": described(TEXT, "What is wrong with it, and what to do."),
}

SHAPES: dict[str, Shape] = {
    "Status": words(Status, "SUCCESS, FAILED and CANCELLED never change again."),
    "Outcome": words(Outcome, "Why a held request was answered."),
    "ClaimOutcome": words(ClaimOutcome, "Why a held claim was answered."),
    "EventKind": words(EventKind.values, "What a version of a task was."),
    "Failure": structure({"type": TEXT, "message": TEXT}),
    "Task": structure({**_STATE, **_TIMES}),
    "TaskSummary": structure({**_SUMMARY, **_TIMES}),
    "Submitted": structure(
        {
            **_STATE,
            **_TIMES,
            "poll_ticket": described(TEXT, "Lets whoever holds it read this one task."),
        }
    ),
    "TaskList": structure(
        {
            "tasks": listed(reference("TaskSummary")),
            "next_cursor": described(optional(TEXT), "null: there is no other page."),
        }
    ),
    "LongPoll": structure({**_STATE, **_ANSWERED, **_HELD}, may_lack=("reset",)),
    "Moved": structure({**_STATE, **_ANSWERED}, may_lack=("reset",)),
    "LongPollMany": structure(
        {
            "tasks": described(listed(reference("Moved")), "Those that moved."),
            "problems": described(
                listed(reference("TaskProblem")), "Those that can't be answered, each by itself."
            ),
            "outcome": reference("Outcome"),
            "should_continue_polling": FLAG,
            **_HELD,
        }
    ),
    "Event": structure(
        {
            "version": VERSION,
            "kind": reference("EventKind"),
            "at": MOMENT,
            "attempt": COUNT,
            "progress": _FRACTION,
            "message": TEXT,
            "data": described(ANYTHING, "What the task reported along with its progress."),
        }
    ),
    "Events": structure(
        {
            **_STATE,
            **_ANSWERED,
            **_HELD,
            "events": listed(reference("Event")),
            "gap": described(FLAG, "Older versions than the first of `events` are not kept."),
            "next_after": described(COUNT, "Send this as `after` with the next poll."),
        },
        may_lack=("reset",),
    ),
    "Plan": structure(
        {
            "task": TEXT,
            "samples": described(COUNT, "Tasks that succeeded since `measured_since`."),
            **{
                f"{kind}p{percent}_ms": optional(MILLISECONDS)
                for kind in ("", "queue_wait_")
                for percent in (50, 95, 99)
            },
            "timeout_seconds": described(optional(SECONDS), "When to give up."),
            "first_interval_seconds": described(optional(SECONDS), "Between the first polls."),
            "first_polls": COUNT,
            "growth": described({"type": "number", "minimum": 1}, "Of each later interval."),
            "max_interval_seconds": described(SECONDS, "Where it ends."),
            "hold_seconds": described(optional(SECONDS), "What to ask of a long poll."),
            "ci_timeout_seconds": described(optional(SECONDS), "What the next run in CI may take."),
            "notes": described(listed(TEXT), "What is not known, and why."),
            "measured_since": optional(MOMENT),
            "relative_error": described(
                {"type": "number", "minimum": 0, "maximum": 1},
                "Of the percentiles; 0: they are exact.",
            ),
        }
    ),
    "DeliveryState": words(DeliveryState, "DELIVERED and FAILED never change again."),
    "Promised": structure(
        {
            "delivery_id": described(
                IDENTIFIER, "The entry's id, or the webhook-id, once it is told."
            ),
            "task_id": IDENTIFIER,
            "inbox": FLAG,
            "webhook": optional(TEXT),
            "state": reference("DeliveryState"),
        }
    ),
    "InboxEntry": structure(
        {
            "id": IDENTIFIER,
            "task_id": IDENTIFIER,
            "task": TEXT,
            "queue": TEXT,
            "status": reference("Status"),
            "version": VERSION,
            "result": described(ANYTHING, "With SUCCESS only, and where it is not apart."),
            "result_apart": described(FLAG, "The result is too large for a list: get the task."),
            "error": _FAILURE,
            "finished_at": MOMENT,
            "delivered_at": MOMENT,
        }
    ),
    "Inbox": structure(
        {
            "entries": described(listed(reference("InboxEntry")), "Oldest first."),
            "has_more": described(
                FLAG, "There are others, which come once these are acknowledged."
            ),
            "outcome": reference("Outcome"),
            **_HELD,
        }
    ),
    "Acknowledged": structure({"id": IDENTIFIER, "acknowledged_at": MOMENT}),
    "LeasedTask": structure(
        {
            "task_id": IDENTIFIER,
            "task": TEXT,
            "queue": TEXT,
            "owner": TEXT,
            "args": listed(ANYTHING),
            "kwargs": {"type": "object"},
            "attempt": VERSION,
            "max_attempts": VERSION,
            "version": VERSION,
            "cancel_requested": FLAG,
            "trace_context": ANYTHING,
            "lease_token": TEXT,
            "lease_seconds": {"type": "number", "exclusiveMinimum": 0},
            "lease_expires_at": MOMENT,
            "deadline": MOMENT,
        }
    ),
    "Claimed": structure(
        {
            "claim_id": TEXT,
            "queue": TEXT,
            "outcome": reference("ClaimOutcome"),
            "repeated": described(FLAG, "These are what is left of an earlier claim of this id."),
            "tasks": listed(reference("LeasedTask")),
            **_HELD,
        }
    ),
    "Standing": structure(
        {
            "task_id": IDENTIFIER,
            "attempt": VERSION,
            "status": reference("Status"),
            "version": VERSION,
            "cancel_requested": FLAG,
            "lease_expires_at": optional(MOMENT),
            "repeated": FLAG,
        }
    ),
    "Problem": structure({**_PROBLEM, "parameter": TEXT}, may_lack=("parameter",)),
    "TaskProblem": structure({"task": described(TEXT, "As it was sent."), **_PROBLEM}),
}
