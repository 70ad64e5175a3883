"""Poll tickets: whoever holds one may read one task, for a while, and needs no other credentials.

A ticket is signed, so that nothing has to be stored, with a key that is derived for this purpose: what else the project
signs is no ticket.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.core.signing import BadSignature, TimestampSigner, b62_decode

from tasks_app import conf

_SALT = "asyncpoll.poll-ticket"


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket that is valid. `expires_at` is in seconds since 1970."""

    task_id: UUID
    expires_at: float


def poll_ticket(task_id: UUID) -> str:
    """A signed, expiring ticket that lets whoever holds it read this one task."""
    return TimestampSigner(salt=_SALT).sign(task_id.hex)


def read_ticket(text: str) -> Ticket | None:
    """The ticket in `text`; None if it is forged, damaged, or has expired."""
    lifetime = conf.current().TICKET_SECONDS
    try:
        # Compares in constant time.
        signed = TimestampSigner(salt=_SALT).unsign(text, max_age=timedelta(seconds=lifetime))
        issued_at = b62_decode(text.split(":")[1])
        return Ticket(UUID(signed), issued_at + lifetime)
    except (BadSignature, ValueError):
        return None
