"""Rows as the client sees them."""

from __future__ import annotations

from typing import Any, Protocol

import orjson

from tasks_app.hold.replay import Replay
from tasks_app.hold.waiting import Answer
from tasks_app.hold.window import Window
from tasks_app.store import Event, Snapshot


def etag(row: Snapshot) -> str:
    """The entity tag of a version."""
    return f'W/"v{row.version}"'


def task_state(row: Snapshot, result: str | None = None) -> dict[str, Any]:
    """What every answer says about a task. `result` is JSON text."""
    return {
        "task_id": row.id,
        "task": row.name,
        "status": row.status,
        "version": row.version,
        "progress": row.progress,
        "message": row.message,
        "attempt": row.attempt,
        "result": None if result is None else orjson.Fragment(result),
        "error": _error(row),
        "stalled": row.stalled,
    }


def hold_answer(answer: Answer) -> dict[str, Any]:
    """The body of a long poll."""
    body = task_state(answer.row, answer.result)
    body["outcome"] = answer.outcome
    if answer.reset:
        body["reset"] = True
    body["should_continue_polling"] = not answer.row.is_terminal
    add_hold(body, answer)
    return body


class Held(Protocol):
    """What every answer to a hold says about the hold."""

    @property
    def window(self) -> Window:
        """The hold that was granted."""

    @property
    def held_seconds(self) -> float:
        """How long it lasted."""

    @property
    def backoff_ms(self) -> int:
        """How long the client should wait now."""


def add_hold(body: dict[str, Any], held: Held) -> None:
    """Say when to ask again, how long this was held, and how long a client has to be patient."""
    body["recommended_client_backoff_ms"] = held.backoff_ms
    body["hold_duration_ms"] = round(held.held_seconds * 1000, 1)
    body["hold_granted_ms"] = held.window.granted_ms
    body["client_read_timeout_ms"] = held.window.client_read_timeout_ms


def replay_answer(told: Replay) -> dict[str, Any]:
    """The body of a poll for events."""
    body = hold_answer(told.held)
    body["events"] = [_event(event) for event in told.events]
    body["gap"] = told.gap
    body["next_after"] = told.next_after
    body["should_continue_polling"] = told.has_more or not told.held.row.is_terminal
    return body


def _event(event: Event) -> dict[str, Any]:
    return {
        "version": event.version,
        "kind": event.kind,
        "at": event.at,
        "attempt": event.attempt,
        "progress": event.progress,
        "message": event.message,
        "data": None if event.data is None else orjson.Fragment(event.data),
    }


def task_resource(row: Snapshot, result: str | None = None) -> dict[str, Any]:
    """The task itself, as `GET /tasks/{id}` shows it."""
    return {
        **task_state(row, result),
        "queue": row.queue,
        "cancel_requested": row.cancel_requested,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
    }


def task_summary(row: Snapshot) -> dict[str, Any]:
    """The task as a list shows it: without its result, which may be large."""
    body = task_resource(row)
    del body["result"]
    return body


def _error(row: Snapshot) -> dict[str, str] | None:
    if row.status != "FAILED":
        return None
    return {"type": row.error_type, "message": row.error_message}
