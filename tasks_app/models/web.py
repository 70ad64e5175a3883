"""The web process, as it last said of itself."""

from __future__ import annotations

from django.db import models


class WebProcess(models.Model):
    """One boot of one web process. One that goes away takes its row with it, or is forgotten an hour later."""

    id = models.UUIDField(primary_key=True, editable=False)
    hostname = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    held = models.IntegerField()
    most_held = models.IntegerField()
    draining = models.BooleanField()
    lag_seconds = models.FloatField()
    bridge = models.CharField(max_length=9)
    linked = models.BooleanField(help_text="Wake-ups are heard.")
    layered = models.BooleanField(help_text="The channel layer does what it is asked for.")
    woken = models.IntegerField(help_text="Ends told to held requests in the last minute.")
    wake_p50 = models.FloatField(null=True, help_text="Seconds from commit to answer, at most.")
    wake_p95 = models.FloatField(null=True)

    def __str__(self) -> str:
        return f"{self.hostname}:{self.pid}"
