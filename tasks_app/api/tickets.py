"""Poll tickets: whoever holds one may read one task, for a while, and needs no other credentials.

A ticket is signed, so that nothing has to be stored, with a key that is derived for this purpose: what else the project
signs is no ticket. It has the id of its task, and where that is known a mark of whose crowd its holder belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.core.signing import BadSignature, TimestampSigner, b62_decode
from django.utils.crypto import salted_hmac

from tasks_app import conf

_SALT = "asyncpoll.poll-ticket"
_CROWD_SALT = "asyncpoll.poll-ticket.crowd"
_CROWD_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket that is valid. `crowd` stands for the owner whose it is; empty if it was made without an owner.

    `expires_at` is in seconds since 1970.
    """

    task_id: UUID
    crowd: str
    expires_at: float


def poll_ticket(task_id: UUID, owner: str | None = None) -> str:
    """A signed, expiring ticket that lets whoever holds it read this one task.

    With the `owner` of the task, all who hold such tickets share what one owner's crowd may have held at once; without,
    all who hold such a one, whoever's task it is for.
    """
    crowd = "" if owner is None else f".{_crowd(owner)}"
    return TimestampSigner(salt=_SALT).sign(f"{task_id.hex}{crowd}")


def read_ticket(text: str) -> Ticket | None:
    """The ticket in `text`; None if it is forged, damaged, or has expired."""
    lifetime = conf.current().TICKET_SECONDS
    try:
        # Compares in constant time.
        signed = TimestampSigner(salt=_SALT).unsign(text, max_age=timedelta(seconds=lifetime))
        issued_at = b62_decode(text.split(":")[1])
        task_id, _, crowd = signed.partition(".")
        return Ticket(UUID(task_id), crowd, issued_at + lifetime)
    except (BadSignature, ValueError):
        return None


def _crowd(owner: str) -> str:
    """The owner, without its name: phones need not know whose backend theirs is."""
    return salted_hmac(_CROWD_SALT, owner, algorithm="sha256").hexdigest()[:_CROWD_CHARACTERS]
