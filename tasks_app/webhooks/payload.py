"""What a webhook says."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson

from asyncpoll.contract import Status
from tasks_app.store import ENDINGS, Ended


def ended_task(ended: Ended) -> dict[str, Any]:
    """A task that is over, as inboxes and webhooks tell of it."""
    return {
        "task_id": ended.task_id,
        "task": ended.name,
        "queue": ended.queue,
        "status": ended.status,
        "version": ended.version,
        "result": None if ended.result is None else orjson.Fragment(ended.result),
        "result_apart": ended.result_apart,
        "error": _error(ended),
        "finished_at": ended.finished_at,
    }


def body_of(delivery_id: UUID, ended: Ended) -> str:
    """The body of a webhook, the same at each attempt."""
    message = {
        "type": f"task.{ENDINGS[ended.status]}",
        "timestamp": ended.finished_at,
        "data": {"delivery_id": delivery_id, **ended_task(ended)},
    }
    return orjson.dumps(message, option=orjson.OPT_UTC_Z).decode()


def _error(ended: Ended) -> dict[str, str] | None:
    if ended.status is not Status.FAILED:
        return None
    return {"type": ended.error_type, "message": ended.error_message}
