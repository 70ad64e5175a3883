"""What Celery's words mean for a mirrored task: pure, and without models."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from asyncpoll.contract import Status
from tasks_app import conf
from tasks_app.errors import NotJson
from tasks_app.store import ENDINGS, Milestone
from tasks_app.store.jsontext import clean_text, to_json

NAME_CHARACTERS = 200
_ERROR_CHARACTERS = 4_000

Outcome = tuple[Status, dict[str, Any]]
"""Where an attempt leaves its task, and the rest of the `Change` that says so."""


def success(value: Any) -> Outcome:
    """The task returned `value`."""
    try:
        result, message = to_json(value, "The result", conf.current().MAX_RESULT_BYTES), ""
    except NotJson as error:
        # Celery's serializers take more than JSON. The task did succeed; only what it gave can't be shown.
        result, message = "null", str(error)
    milestone = _ended(Status.SUCCESS, 1.0, message)
    return Status.SUCCESS, {"result": result, "milestones": (milestone,)}


def failure(error: BaseException) -> Outcome:
    """The task failed for good: Celery, not the registry, decides on retries."""
    return Status.FAILED, {"milestones": (_ended(Status.FAILED),), **_error_facts(error)}


def ignored() -> Outcome:
    """The task raised Ignore, and nobody will say any more of it."""
    milestone = _ended(
        Status.CANCELLED, None, "The task raised Ignore: its outcome is known to itself alone."
    )
    return Status.CANCELLED, {"milestones": (milestone,)}


def retry(reason: Any) -> Outcome:
    """Celery sent the task once more. `reason` is its Retry, which knows why and when."""
    error = getattr(reason, "exc", None) or reason
    delay = _seconds_until(getattr(reason, "when", None))
    facts = _error_facts(error)
    message = f"{facts['error_type']}: {facts['error_message']}"[:300]
    milestone = Milestone("retried", message=f"Celery tries again in {delay:.1f} s ({message}).")
    return Status.PENDING, {"milestones": (milestone,), "delay_seconds": delay, **facts}


def revoked() -> Outcome:
    """The task was terminated."""
    return Status.CANCELLED, {"milestones": (_ended(Status.CANCELLED),)}


def _error_facts(error: BaseException) -> dict[str, Any]:
    return {
        "error_type": type(error).__name__[:NAME_CHARACTERS],
        "error_message": clean_text(str(error))[:_ERROR_CHARACTERS],
        "failed": True,
    }


def _ended(status: Status, progress: float | None = None, message: str = "") -> Milestone:
    return Milestone(ENDINGS[status], progress, message)


def moment_of(eta: Any) -> datetime | None:
    """When a message is to be run; None: now, also for what can't be read."""
    if not eta:
        return None
    try:
        moment = datetime.fromisoformat(str(eta))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _seconds_until(when: Any) -> float:
    if isinstance(when, int | float):
        return max(0.0, float(when))
    moment = moment_of(when)
    return 0.0 if moment is None else max(0.0, moment.timestamp() - time.time())
