"""The history of a task: one row per version, written by the statement that made the version."""

from __future__ import annotations

from typing import Any

from django.db import models

from tasks_app.models.status import EventKind


class TaskEvent(models.Model):
    """What happened at one version of a task.

    No foreign key: both rows are written by one statement and pruned together, and checking the key would cost
    every commit a lookup.
    """

    pk = models.CompositePrimaryKey("task_id", "version")
    task_id = models.UUIDField()
    version = models.IntegerField()
    kind = models.CharField(max_length=20, choices=EventKind.choices)
    at = models.DateTimeField()
    attempt = models.IntegerField(default=0)
    worker = models.UUIDField(null=True, blank=True, help_text="Who started the attempt.")
    progress = models.FloatField(null=True, blank=True)
    message = models.TextField(blank=True, default="")
    data: models.JSONField[Any, Any] = models.JSONField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.task_id} v{self.version} {self.kind}"
