"""An action over all that a filter matches, as it was confirmed, and how far it has come."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tasks_app.limits import MAX_NAME_LENGTH


class Verb(models.TextChoices):
    """What is done to each task."""

    CANCEL = "cancel", "Cancel"
    RUN_AGAIN = "run_again", "Run again"
    REQUEUE = "requeue", "Requeue"
    DELETE = "delete", "Delete"

    def to(self, count: int) -> str:
        """What is done, with the number of tasks: Run 2 tasks again."""
        tasks = f"{count:,} task{'' if count == 1 else 's'}"
        return f"Run {tasks} again" if self is Verb.RUN_AGAIN else f"{self.label} {tasks}"


class Order(models.Model):
    """`counted` tasks matched when somebody confirmed; newer ones are left alone. Of the filter, NULL matches any."""

    id = models.UUIDField(primary_key=True, editable=False)
    verb = models.CharField(max_length=9, choices=Verb.choices)
    owner = models.CharField(max_length=MAX_NAME_LENGTH, null=True)
    status = models.CharField(max_length=9, null=True)
    name = models.CharField("type", max_length=MAX_NAME_LENGTH, null=True)
    queue = models.CharField(max_length=MAX_NAME_LENGTH, null=True)
    cursor = models.UUIDField(help_text="Only older tasks than this are left.")
    counted = models.IntegerField()
    done = models.IntegerField()
    skipped = models.IntegerField()
    placed_by = models.CharField(max_length=MAX_NAME_LENGTH)
    placed_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name = "bulk action"
        indexes = [
            models.Index("id", name="asyncpoll_order_open", condition=Q(ended_at__isnull=True))
        ]

    def __str__(self) -> str:
        return Verb(self.verb).to(self.counted)
