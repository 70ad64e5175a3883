"""What an owner's webhooks are signed with."""

from __future__ import annotations

from django.db import models

from tasks_app.limits import MAX_NAME_LENGTH


class WebhookSecret(models.Model):
    """Half of a secret: the other is SECRET_KEY, so that the database alone signs nothing.

    A proof tells whether that key is still the one; the previous secret signs beside the new one for a while.
    """

    owner = models.CharField(primary_key=True, max_length=MAX_NAME_LENGTH, editable=False)
    salt = models.BinaryField()
    proof = models.BinaryField()
    previous_salt = models.BinaryField(null=True)
    previous_proof = models.BinaryField(null=True)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.owner
