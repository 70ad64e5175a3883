"""The words on the wire. Server and client import these; nothing here imports anything but the standard library."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final

API_VERSION: Final = "v1"


class Status(StrEnum):
    """Where a task is in its life. `SUCCESS`, `FAILED` and `CANCELLED` are terminal: they never change again."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        """True when the task is over."""
        return self in TERMINAL


TERMINAL: Final = frozenset({Status.SUCCESS, Status.FAILED, Status.CANCELLED})


def percent(fraction: float) -> str:
    """0.125 as "12 %": rounded down, so that only what is complete says 100."""
    return f"{math.floor(fraction * 100 + 1e-9)} %"


class Outcome(StrEnum):
    """Why a held request was answered."""

    CHANGED = "CHANGED"
    TERMINAL = "TERMINAL"
    STILL_RUNNING = "STILL_RUNNING"
    DRAINING = "DRAINING"
    SHED = "SHED"


class ClaimOutcome(StrEnum):
    """Why a held claim was answered. `CLAIMED` comes with tasks, or is a claim once more whose tasks are all over."""

    CLAIMED = "CLAIMED"
    EMPTY = "EMPTY"
    DRAINING = "DRAINING"
    SHED = "SHED"


class DeliveryState(StrEnum):
    """Where telling of a task's end is in its life. `DELIVERED` and `FAILED` never change again."""

    WAITING = "WAITING"
    DUE = "DUE"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


class Problem(StrEnum):
    """Stable `type` of an RFC 9457 problem document, as a relative reference."""

    INVALID_PARAMETER = "/problems/invalid-parameter"
    INVALID_BODY = "/problems/invalid-body"
    BODY_TOO_LARGE = "/problems/body-too-large"
    UNSUPPORTED_MEDIA_TYPE = "/problems/unsupported-media-type"
    UNKNOWN_TASK_TYPE = "/problems/unknown-task-type"
    INVALID_ARGUMENTS = "/problems/invalid-arguments"
    OUT_OF_BOUNDS = "/problems/out-of-bounds"
    IDEMPOTENCY_KEY_REUSED = "/problems/idempotency-key-reused"
    NOTIFY_REFUSED = "/problems/notify-refused"
    TASK_NOT_FOUND = "/problems/task-not-found"
    TASK_GONE = "/problems/task-gone"
    ENTRY_NOT_FOUND = "/problems/entry-not-found"
    LEASE_LOST = "/problems/lease-lost"
    NOT_FOUND = "/problems/not-found"
    METHOD_NOT_ALLOWED = "/problems/method-not-allowed"
    UNAUTHENTICATED = "/problems/unauthenticated"
    FORBIDDEN = "/problems/forbidden"
    TOO_MANY_REQUESTS = "/problems/too-many-requests"
    OVERLOADED = "/problems/overloaded"
    UNAVAILABLE = "/problems/unavailable"
    INTERNAL = "/problems/internal-error"

    @property
    def summary(self) -> str:
        """What the type means, in a few words."""
        return _TITLES[self]


_TITLES: Final = {
    Problem.INVALID_PARAMETER: "A parameter breaks a rule",
    Problem.INVALID_BODY: "The body is not a valid request",
    Problem.BODY_TOO_LARGE: "The body is too large",
    Problem.UNSUPPORTED_MEDIA_TYPE: "The body must be JSON",
    Problem.UNKNOWN_TASK_TYPE: "No such task can be submitted",
    Problem.INVALID_ARGUMENTS: "The arguments do not fit the task",
    Problem.OUT_OF_BOUNDS: "More was asked for than the task allows",
    Problem.IDEMPOTENCY_KEY_REUSED: "The idempotency key stands for another request",
    Problem.NOTIFY_REFUSED: "The end can't be told there",
    Problem.TASK_NOT_FOUND: "No such task",
    Problem.TASK_GONE: "The task was deleted",
    Problem.ENTRY_NOT_FOUND: "No such inbox entry",
    Problem.LEASE_LOST: "The lease has ended",
    Problem.NOT_FOUND: "No such page",
    Problem.METHOD_NOT_ALLOWED: "Method not allowed",
    Problem.UNAUTHENTICATED: "Credentials are needed",
    Problem.FORBIDDEN: "These credentials do not allow it",
    Problem.TOO_MANY_REQUESTS: "Too many requests",
    Problem.OVERLOADED: "Too many requests are held",
    Problem.UNAVAILABLE: "The service is not available",
    Problem.INTERNAL: "Something went wrong here",
}

PROBLEM_MEDIA_TYPE: Final = "application/problem+json"
JSON_MEDIA_TYPE: Final = "application/json"

# A client must wait this much longer than the hold it was granted before it calls the connection dead.
READ_TIMEOUT_MARGIN_MS: Final = 10_000
