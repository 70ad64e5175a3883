"""The API token: whom it acts for, what it may, and until when."""

from __future__ import annotations

from typing import Any

from django.db import models

from tasks_app.models.task import MAX_NAME_LENGTH


class Token(models.Model):
    """A token as it is kept: the digest of its secret, never the secret. Only `tasks_app.store` changes it."""

    id = models.CharField(primary_key=True, max_length=12, editable=False)
    digest = models.BinaryField()
    label = models.CharField(max_length=MAX_NAME_LENGTH, blank=True, help_text="What it is for.")
    owner = models.CharField(max_length=MAX_NAME_LENGTH, blank=True)
    scopes: models.JSONField[Any, Any] = models.JSONField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(
        null=True, blank=True, help_text="To within a quarter of an hour."
    )

    class Meta:
        permissions = [("revoke_token", "Can revoke tokens")]

    def __str__(self) -> str:
        return f"ap_{self.id}"
