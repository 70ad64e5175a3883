"""The recurring schedule: what is enqueued, and when next."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q

from tasks_app.limits import MAX_NAME_LENGTH, MAX_PRIORITY, MAX_TIMEOUT_SECONDS, MIN_PRIORITY
from tasks_app.models.task import readable


class Schedule(models.Model):
    """A schedule as the code last declared it, and where it stands. Only `tasks_app.store` changes it.

    `next_tick` is the guard: whoever moves it on enqueues the task, in the same statement.
    """

    name = models.CharField(max_length=MAX_NAME_LENGTH, unique=True)
    task = models.CharField("type", max_length=MAX_NAME_LENGTH)
    cron = models.CharField(max_length=MAX_NAME_LENGTH)
    timezone = models.CharField("time zone", max_length=MAX_NAME_LENGTH)
    queue = models.CharField(max_length=MAX_NAME_LENGTH)
    owner = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    priority = models.SmallIntegerField()
    args: models.JSONField[Any, Any] = models.JSONField()
    kwargs: models.JSONField[Any, Any] = models.JSONField()
    max_attempts = models.PositiveSmallIntegerField()
    timeout_seconds = models.FloatField()

    active = models.BooleanField(help_text="A running process declares it.")
    declared_at = models.DateTimeField(help_text="When one last said so.")
    paused = models.BooleanField(help_text="Its ticks pass without a task.")
    next_tick = models.DateTimeField()
    last_tick = models.DateTimeField(
        null=True, blank=True, help_text="The last one that made a task."
    )
    last_task = models.UUIDField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="asyncpoll_schedule_bounds",
                condition=Q(
                    priority__gte=MIN_PRIORITY,
                    priority__lte=MAX_PRIORITY,
                    timeout_seconds__gte=0,
                    timeout_seconds__lte=MAX_TIMEOUT_SECONDS,
                ),
            ),
            models.CheckConstraint(
                name="asyncpoll_ticks_readable", condition=readable("next_tick", "last_tick")
            ),
        ]
        permissions = [
            ("pause_schedule", "Can pause and resume schedules"),
            ("run_schedule", "Can run schedules now"),
        ]

    def __str__(self) -> str:
        return self.name
