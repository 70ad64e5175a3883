"""Claim checks: where the end of a task goes, and each try to bring it there."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from asyncpoll.contract import DeliveryState
from tasks_app.limits import MAX_NAME_LENGTH


class State(models.TextChoices):
    """`asyncpoll.contract.DeliveryState` in Django's grammar."""

    WAITING = DeliveryState.WAITING.value, "Waiting for the end"
    DUE = DeliveryState.DUE.value, "On its way"
    DELIVERED = DeliveryState.DELIVERED.value, "Delivered"
    FAILED = DeliveryState.FAILED.value, "Given up"


class Delivery(models.Model):
    """One target of one task: asked for once, however often it is asked for. Only `tasks_app.store` changes it.

    No foreign key, as with TaskEvent. The task's end makes it DUE, by a trigger that only tasks which somebody asked
    about have to do with.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    task_id = models.UUIDField()
    owner = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    target = models.TextField(
        blank=True, help_text="The webhook's address; empty: the owner's inbox."
    )
    target_key = models.UUIDField(help_text="Of the target, which may be too long for an index.")
    host = models.CharField(max_length=260, blank=True, help_text="Whose turn it is to be sent to.")
    state = models.CharField(max_length=9, choices=State.choices, default=State.WAITING)
    attempts = models.IntegerField(default=0)
    created_at = models.DateTimeField()
    owed_at = models.DateTimeField(null=True, blank=True, help_text="When it became due first.")
    due_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(
                fields=["task_id", "target_key"], name="asyncpoll_delivery_once"
            ),
            models.CheckConstraint(
                name="asyncpoll_delivery_sound",
                condition=Q(state="WAITING", due_at__isnull=True, finished_at__isnull=True)
                | Q(
                    state="DUE",
                    owed_at__isnull=False,
                    due_at__isnull=False,
                    finished_at__isnull=True,
                )
                | Q(
                    state__in=["DELIVERED", "FAILED"],
                    due_at__isnull=True,
                    finished_at__isnull=False,
                ),
            ),
        ]
        indexes = [
            models.Index(
                "owner",
                "host",
                "due_at",
                "id",
                name="asyncpoll_delivery_routes",
                condition=Q(state="DUE", host__gt=""),
            ),
            models.Index(
                "due_at",
                "id",
                name="asyncpoll_delivery_inboxes",
                condition=Q(state="DUE", host=""),
            ),
            models.Index("id", name="asyncpoll_delivery_waiting", condition=Q(state="WAITING")),
            models.Index("owner", "id", name="asyncpoll_delivery_owned"),
            models.Index(
                "finished_at",
                "id",
                name="asyncpoll_delivery_over",
                condition=Q(finished_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.host or 'inbox'} {self.task_id}"


class DeliveryAttempt(models.Model):
    """One try to send a webhook: what came back, never the answer's body. It goes with its delivery."""

    pk = models.CompositePrimaryKey("delivery_id", "number")
    delivery_id = models.UUIDField()
    number = models.IntegerField()
    at = models.DateTimeField()
    status = models.SmallIntegerField(null=True, blank=True)
    error = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    duration_ms = models.FloatField()

    def __str__(self) -> str:
        return f"{self.delivery_id} #{self.number}"
