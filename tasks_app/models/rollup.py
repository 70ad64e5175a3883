"""Durations of many tasks in few rows: a quantile sketch for each hour, and for each day that is long past."""

from __future__ import annotations

from typing import Any

from django.db import models

from tasks_app.limits import MAX_NAME_LENGTH


class Integers(models.Field):
    """integer[], which Django has only for projects that install `django.contrib.postgres`."""

    def db_type(self, connection: Any) -> str:
        """What Postgres calls it."""
        return "integer[]"


class SmallIntegers(Integers):
    """smallint[]: with these for bins, nearly every rollup fits into its row."""

    def db_type(self, connection: Any) -> str:
        """What Postgres calls it."""
        return "smallint[]"


class Rollup(models.Model):
    """The attempts of one type and queue that ended their tasks within an hour, or a day, from `started_at` on (UTC).

    How long they ran and had waited, as counts of the bins that they fall into; see `tasks_app.insights.sketch`. A bin
    may come more than once.
    """

    pk = models.CompositePrimaryKey("task", "started_at", "span_seconds", "queue", "outcome")
    task = models.CharField("type", max_length=MAX_NAME_LENGTH)
    started_at = models.DateTimeField()
    span_seconds = models.PositiveIntegerField()
    queue = models.CharField(max_length=MAX_NAME_LENGTH)
    outcome = models.CharField(max_length=9)
    count = models.BigIntegerField()
    ran_bins = SmallIntegers()
    ran_counts = Integers()
    waited_bins = SmallIntegers()
    waited_counts = Integers()

    class Meta:
        indexes = [
            models.Index("span_seconds", "started_at", name="asyncpoll_rollup_spans"),
        ]

    def __str__(self) -> str:
        return f"{self.task} {self.started_at:%Y-%m-%d %H:%M}"


class RolledHour(models.Model):
    """An hour whose tasks were rolled up, and when last: some commit late."""

    started_at = models.DateTimeField(primary_key=True)
    rolled_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M}"
