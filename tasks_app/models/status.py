"""The state machine, as data. The store's statements follow it; CHECK constraints mirror it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db import models

from asyncpoll.contract import TERMINAL, Status


class TaskStatus(models.TextChoices):
    """`asyncpoll.contract.Status` in Django's grammar."""

    PENDING = Status.PENDING.value, "Pending"
    RUNNING = Status.RUNNING.value, "Running"
    SUCCESS = Status.SUCCESS.value, "Success"
    FAILED = Status.FAILED.value, "Failed"
    CANCELLED = Status.CANCELLED.value, "Cancelled"


# RUNNING -> PENDING is a retry, a rescue or a release; PENDING -> SUCCESS or FAILED is the first and last step of code
# that runs the task outside the workers.
TRANSITIONS: Final[Mapping[Status, frozenset[Status]]] = {
    Status.PENDING: frozenset({Status.RUNNING, *TERMINAL}),
    Status.RUNNING: frozenset({Status.PENDING, Status.SUCCESS, Status.FAILED, Status.CANCELLED}),
    **{status: frozenset() for status in TERMINAL},
}

TERMINAL_VALUES: Final = tuple(sorted(status.value for status in TERMINAL))


class EventKind(models.TextChoices):
    """What a version of a task was."""

    ENQUEUED = "enqueued", "Enqueued"
    STARTED = "started", "Started"
    PROGRESS = "progress", "Progress"
    STEP = "step", "Step done"
    RETRIED = "retried", "Retry scheduled"
    RELEASED = "released", "Given back"
    RESCUED = "rescued", "Lease expired"
    CANCEL_REQUESTED = "cancel_requested", "Cancel requested"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
