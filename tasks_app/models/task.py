"""The task: one row, one status, one version, one result."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Greatest, Least
from django.db.models.lookups import GreaterThanOrEqual, LessThanOrEqual

from tasks_app.limits import (
    FIRST_MOMENT,
    LAST_MOMENT,
    MAX_NAME_LENGTH,
    MAX_PRIORITY,
    MAX_TIMEOUT_SECONDS,
    MIN_PRIORITY,
    new_task_id,
)
from tasks_app.models.status import TaskStatus


def readable(*fields: str) -> Q:
    """Each of these moments, unless it is NULL, is one that can be read back and computed with."""
    return Q(GreaterThanOrEqual(Least(*fields), FIRST_MOMENT)) & Q(
        LessThanOrEqual(Greatest(*fields), LAST_MOMENT)
    )


class Task(models.Model):
    """A unit of work. Only `tasks_app.store` changes it; each visible change adds one to `version`."""

    id = models.UUIDField(primary_key=True, default=new_task_id, editable=False)
    name = models.CharField("type", max_length=MAX_NAME_LENGTH)
    queue = models.CharField(max_length=MAX_NAME_LENGTH, default="default")
    owner = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, default="")
    backend = models.CharField(
        max_length=MAX_NAME_LENGTH,
        blank=True,
        db_default="",
        help_text="Alias in TASKS, where the task was enqueued through Django's Tasks framework.",
    )
    priority = models.SmallIntegerField(default=0)

    status = models.CharField(max_length=9, choices=TaskStatus.choices, default=TaskStatus.PENDING)
    version = models.IntegerField(default=1)
    args: models.JSONField[Any, Any] = models.JSONField(default=list)
    kwargs: models.JSONField[Any, Any] = models.JSONField(default=dict)
    result: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)
    error_type = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, default="")
    error_class = models.TextField(
        blank=True, db_default="", help_text="Module and qualified name of the exception's class."
    )
    error_message = models.TextField(blank=True, default="")
    traceback = models.TextField(blank=True, default="")
    progress = models.FloatField(null=True, blank=True)
    message = models.TextField(blank=True, default="")

    attempt = models.IntegerField(default=0, help_text="The fence: only a claim adds to it.")
    failures = models.IntegerField(
        default=0, help_text="Errors, time-outs and expired leases; what max_attempts limits."
    )
    max_attempts = models.SmallIntegerField(default=3)
    timeout_seconds = models.FloatField(default=600.0)

    ready = models.BooleanField(default=True, help_text="Due; the only rows in the claim index.")
    order_key = models.DateTimeField(help_text="run_at less the head start that priority gives.")
    run_at = models.DateTimeField()
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    worker = models.UUIDField(null=True, blank=True)
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    cancel_requested = models.BooleanField(default=False)
    awaited = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its end makes the deliveries due that wait for it.",
    )
    retried_from = models.UUIDField(null=True, blank=True)
    trace_context = models.JSONField(null=True, blank=True)

    class Meta:
        permissions = [
            ("cancel_task", "Can cancel tasks"),
            ("run_again_task", "Can run tasks again"),
            ("requeue_task", "Can put running tasks back into their queue"),
        ]
        # Two, as Postgres makes ready to check them for each statement anew: fifteen took longer than the update.
        constraints = [
            models.CheckConstraint(
                name="asyncpoll_status_sound",
                condition=Q(
                    status="PENDING",
                    lease_expires_at__isnull=True,
                    finished_at__isnull=True,
                    result__isnull=True,
                )
                | Q(
                    status="RUNNING",
                    ready=False,
                    lease_expires_at__isnull=False,
                    worker__isnull=False,
                    finished_at__isnull=True,
                    result__isnull=True,
                )
                | Q(
                    status="SUCCESS",
                    ready=False,
                    lease_expires_at__isnull=True,
                    finished_at__isnull=False,
                )
                | Q(
                    status__in=["FAILED", "CANCELLED"],
                    ready=False,
                    lease_expires_at__isnull=True,
                    finished_at__isnull=False,
                    result__isnull=True,
                ),
            ),
            models.CheckConstraint(
                name="asyncpoll_values_sound",
                condition=Q(
                    version__gte=1,
                    failures__gte=0,
                    failures__lte=F("attempt"),
                    priority__gte=MIN_PRIORITY,
                    priority__lte=MAX_PRIORITY,
                    timeout_seconds__gte=0,
                    timeout_seconds__lte=MAX_TIMEOUT_SECONDS,
                )
                & (Q(progress__isnull=True) | Q(progress__gte=0, progress__lte=1))
                & readable("run_at", "created_at", "started_at", "finished_at", "lease_expires_at"),
            ),
        ]
        indexes = [
            models.Index(
                "queue",
                "owner",
                "order_key",
                "id",
                name="asyncpoll_lanes",
                condition=Q(ready=True),
            ),
            models.Index(
                "run_at", name="asyncpoll_due", condition=Q(status="PENDING", ready=False)
            ),
            models.Index(
                "lease_expires_at", name="asyncpoll_leases", condition=Q(status="RUNNING")
            ),
            models.Index(
                "finished_at",
                "id",
                name="asyncpoll_finished",
                condition=Q(finished_at__isnull=False),
            ),
            # For lists, newest first. Tasks without an owner pay nothing for it.
            models.Index("owner", "id", name="asyncpoll_owned", condition=Q(owner__gt="")),
            # For actions on all that did not succeed. Those that did pay nothing for it.
            models.Index(
                "status",
                "id",
                name="asyncpoll_unsuccessful",
                condition=Q(status__in=["FAILED", "CANCELLED"]),
            ),
            # From a task to those that run it again, which few do.
            models.Index(
                "retried_from",
                "id",
                name="asyncpoll_retries",
                condition=Q(retried_from__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.id}"
