"""What an owner's inbox holds."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tasks_app.limits import MAX_NAME_LENGTH
from tasks_app.models.task import TaskStatus


class InboxEntry(models.Model):
    """A task that ended, as told to its owner; it has its delivery's id, and says what there is to say without its task."""

    id = models.UUIDField(primary_key=True, editable=False)
    owner = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    task_id = models.UUIDField()
    name = models.CharField("type", max_length=MAX_NAME_LENGTH)
    queue = models.CharField(max_length=MAX_NAME_LENGTH)
    status = models.CharField(max_length=9, choices=TaskStatus.choices)
    version = models.IntegerField()
    error_type = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    error_message = models.TextField(blank=True)
    finished_at = models.DateTimeField()
    created_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "inbox entries"
        indexes = [
            models.Index(
                "owner",
                "created_at",
                "id",
                name="asyncpoll_inbox_open",
                condition=Q(acknowledged_at__isnull=True),
            ),
            models.Index(
                "created_at", name="asyncpoll_inbox_old", condition=Q(acknowledged_at__isnull=True)
            ),
            models.Index(
                "acknowledged_at",
                name="asyncpoll_inbox_over",
                condition=Q(acknowledged_at__isnull=False),
            ),
            models.Index("owner", "id", name="asyncpoll_inbox_owned"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.task_id}"
