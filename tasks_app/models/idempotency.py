"""Which task an idempotency key stands for."""

from __future__ import annotations

from django.db import models


class IdempotencyKey(models.Model):
    """A key of one owner, while it lives. Written by the transaction that stores its task, so that neither is without
    the other."""

    id = models.UUIDField(
        primary_key=True, editable=False, help_text="Of the owner and the key; neither is stored."
    )
    request = models.UUIDField(help_text="Of the body that came with the key.")
    task_id = models.UUIDField()
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return str(self.id)
