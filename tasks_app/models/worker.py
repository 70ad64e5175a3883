"""The worker process, as it last said of itself."""

from __future__ import annotations

from typing import Any

from django.db import models


class WorkerProcess(models.Model):
    """One boot of one worker process. The id is new at each boot, so that an orphan never looks alive."""

    id = models.UUIDField(primary_key=True, editable=False)
    hostname = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    queues: models.JSONField[Any, Any] = models.JSONField(default=list)
    concurrency = models.PositiveIntegerField()
    running = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "worker processes"

    def __str__(self) -> str:
        return f"{self.hostname}:{self.pid}"
