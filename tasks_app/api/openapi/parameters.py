"""What a request says beside its body."""

from __future__ import annotations

from typing import Any

from asyncpoll.contract import Status
from tasks_app.api.bundles import MOST_LINGER_MS, MOST_TASKS
from tasks_app.api.idempotency import MOST_CHARACTERS
from tasks_app.api.lists import MOST_TASKS as MOST_LISTED
from tasks_app.api.lists import USUAL_TASKS
from tasks_app.api.openapi.shapes import COUNT, FLAG, IDENTIFIER, TEXT, Shape, listed, words
from tasks_app.limits import MAX_NAME_LENGTH

Parameter = dict[str, Any]

_NAME: Shape = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_NAME_LENGTH,
    "pattern": "^[^\\u0000]+$",
}
_SECONDS: Shape = {"type": "number", "minimum": 0}


def _query(name: str, schema: Shape, text: str, **more: Any) -> Parameter:
    return {"name": name, "in": "query", "schema": schema, "description": text, **more}


def _header(name: str, schema: Shape, text: str) -> Parameter:
    return {"name": name, "in": "header", "schema": schema, "description": text}


def _path(name: str, schema: Shape) -> Parameter:
    return {"name": name, "in": "path", "required": True, "schema": schema}


TASK_ID = _path("task_id", IDENTIFIER)
ENTRY_ID = _path("entry_id", IDENTIFIER)
QUEUE = _path(
    "queue", {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH, "pattern": "^[ -~]+$"}
)
KNOWN = _query(
    "client_known_version",
    {**COUNT, "default": 0},
    "The version of the last answer; 0: none, so that the answer comes at once.",
)
HOLD = _query(
    "max_hold_seconds",
    _SECONDS,
    "Hold at most so long. More than the server's limit, or nothing, is that limit.",
)
AFTER = _query(
    "after", {**COUNT, "default": 0}, "`next_after` of the last answer; 0: from the beginning."
)
WAIT = _query("wait", {**FLAG, "default": False}, "Wait for the end.")
TIMEOUT = _query("timeout", _SECONDS, "Hold at most so long; only with `wait`.")
MANY = _query(
    "task",
    {**listed(TEXT), "minItems": 1, "maxItems": MOST_TASKS},
    "`ID:VERSION`, or `ID` where no version is known.",
    required=True,
    style="form",
    explode=True,
)
LINGER = _query(
    "linger_ms",
    {**COUNT, "default": 0},
    f"After the first task has moved, wait so long for others; at most {MOST_LINGER_MS}.",
)
STATUS = _query("status", words(Status, "Where a task is in its life."), "Only these.")
NAME = _query("task", _NAME, "Only tasks that were declared with this name.")
OF_TYPE = _query(
    "task", _NAME, "The name that tasks of the type were declared with.", required=True
)
OF_QUEUE = _query("queue", _NAME, "Only those of this queue.")
CURSOR = _query(
    "cursor",
    {"type": "string", "pattern": "^[A-Za-z0-9_-]{28}$"},
    "`next_cursor` of the page before, with the same filters.",
)
LIMIT = _query(
    "limit",
    {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": USUAL_TASKS},
    "At most so many.",
)
IF_NONE_MATCH = _header("If-None-Match", TEXT, "The ETag of the last answer: 304 while it matches.")
PREFER = _header("Prefer", TEXT, "`wait=N`: hold for up to N seconds.")
IDEMPOTENCY_KEY = _header(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS},
    "The same key with the same body gives the first task again, for 24 h.",
)
