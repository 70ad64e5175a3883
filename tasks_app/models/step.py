"""What a task's attempts leave to their successors: the results of its steps."""

from __future__ import annotations

from typing import Any

from django.db import models

from tasks_app.models.task import MAX_NAME_LENGTH


class StepRecord(models.Model):
    """The result of one step of a task, written by the statement that made its version, and never changed.

    No foreign key, as with TaskEvent: it goes with its task.
    """

    pk = models.CompositePrimaryKey("task_id", "name")
    task_id = models.UUIDField()
    name = models.CharField(max_length=MAX_NAME_LENGTH)
    attempt = models.PositiveIntegerField()
    result: models.JSONField[Any, Any] = models.JSONField()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.task_id} {self.name}"
