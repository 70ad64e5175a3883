"""What an executor outside this code base claimed, so that a claim whose answer was cut off can be repeated."""

from __future__ import annotations

from typing import Any

from django.db import models


class Claim(models.Model):
    """The tasks taken under one claim id. Their rows name it as their `worker`; nothing else says who holds them."""

    id = models.UUIDField(primary_key=True, editable=False)
    tasks: models.JSONField[Any, Any] = models.JSONField(default=list)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return str(self.id)
