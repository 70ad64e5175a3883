"""The verbs of claim checks: asking to be told of an end, and telling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from asyncpoll.contract import DeliveryState, Status
from tasks_app.limits import new_task_id
from tasks_app.store.call import Call, Rows, json_text
from tasks_app.store.patience import PATIENCE
from tasks_app.store.webhook_secrets import KeptSecret

MOST_PER_TASK = 5
MOST_RESULT_BYTES = 8_192
"""Results up to this size are told along with the end; a larger one has to be fetched from the task."""
OVERLAP_SECONDS = 86_400.0
"""How long the secret before signs beside a new one."""
MOST_ROUTES = 200
"""That one look takes in."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where an end is told: an address for a webhook, and whose turn it then is; both empty: the owner's inbox."""

    address: str
    host: str
    key: UUID


class Route(NamedTuple):
    """Whose ends are told where; without a host it is the inboxes, all of them."""

    owner: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class Promised:
    """A claim check that is there, from now on or from before."""

    id: UUID
    state: DeliveryState


@dataclass(frozen=True, slots=True)
class Ended:
    """A task that is over, as it is told. `result` is JSON text; `result_apart`: it is too large to come along."""

    task_id: UUID
    name: str
    queue: str
    status: Status
    version: int
    error_type: str
    error_message: str
    finished_at: datetime
    result: str | None
    result_apart: bool


@dataclass(frozen=True, slots=True)
class Due:
    """A webhook that is the caller's to send. `at` is the database's time; `secrets` are the new one and the one before.

    `ended` None: the task was deleted, or is somebody else's by now.
    """

    id: UUID
    owner: str
    address: str
    host: str
    attempt: int
    at: datetime
    owed_seconds: float
    secrets: tuple[KeptSecret, ...]
    ended: Ended | None

    @property
    def route(self) -> Route:
        """Its own."""
        return Route(self.owner, self.host)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one attempt came to. `status` None: there was no answer; `error` empty: it was taken."""

    status: int | None
    error: str
    duration_ms: float


def lock_task(task_id: UUID, owner: str | None = None) -> Call[str | None]:
    """Keep a task of `owner`'s (None: anybody's) from ending until the transaction does. Gives its owner; None: there is none.

    Waits for a statement that ends it, and fails if that takes longer than a second.
    """
    return Call(
        "lock_task",
        {"id": task_id, "owner": owner, "patience": PATIENCE},
        lambda rows: rows[0][0] if rows else None,
    )


def promise(task_id: UUID, target: Target, *, may_be_new: bool = True) -> Call[Promised | None]:
    """Owe a task's end to `target`; for a task that the transaction has locked, or stored.

    None: it is not owed there yet, and has enough of them or may have no new one.
    """
    return Call(
        "promise",
        {
            "id": new_task_id(),
            "task": task_id,
            "target": target.address,
            "key": target.key,
            "host": target.host,
            "most": MOST_PER_TASK if may_be_new else 0,
        },
        lambda rows: Promised(rows[0][0], DeliveryState(rows[0][1])) if rows else None,
    )


def due_routes(start: Route) -> Call[dict[Route, float]]:
    """In how many seconds there is something to tell in each route, from `start` on in alphabetical order."""
    return Call(
        "due_routes",
        {**start._asdict(), "limit": MOST_ROUTES},
        lambda rows: {Route(owner, host): seconds for owner, host, seconds in rows},
    )


def fill_inboxes(limit: int) -> Call[tuple[int, int]]:
    """Put ends that are due into inboxes. Gives how many it looked at, and how many entries that made."""
    return Call("fill_inboxes", {"limit": limit}, lambda rows: (rows[0][0], rows[0][1]))


def take_deliveries(room: Mapping[Route, int], lease_seconds: float) -> Call[list[Due]]:
    """Take webhooks that are due, up to `room` of each route. They are due again when the lease is over."""
    return Call(
        "take_deliveries",
        {
            "routes": json_text(
                [{**route._asdict(), "room": most} for route, most in room.items()]
            ),
            "lease": lease_seconds,
            "overlap": OVERLAP_SECONDS,
            "most": MOST_RESULT_BYTES,
        },
        _due,
    )


def record_delivery(due: Due, attempt: Attempt, pause_seconds: float | None) -> Call[bool]:
    """Record an attempt; a failure is followed by another after `pause_seconds`, None: by none.

    False: the delivery is over, or in the hands of another by now.
    """
    state = DeliveryState.DELIVERED if not attempt.error else DeliveryState.FAILED
    if attempt.error and pause_seconds is not None:
        state = DeliveryState.DUE
    return Call(
        "record_delivery",
        {
            "id": due.id,
            "attempt": due.attempt,
            "state": state.value,
            "status": attempt.status,
            "error": attempt.error,
            "duration_ms": attempt.duration_ms,
            "pause": pause_seconds or 0.0,
        },
        bool,
    )


def revisit_deliveries(
    limit: int, after: UUID, alone: bool = False
) -> Call[tuple[int, UUID | None]]:
    """Find claim checks whose task's end went unnoticed. Gives how many, and where to go on; None: there are no others."""
    return Call(
        "revisit_deliveries",
        {"limit": limit, "after": after, "alone": alone},
        lambda rows: (rows[0][0], rows[0][1]),
    )


def ended(row: Sequence[object]) -> Ended:
    """The columns of an end, from the task's id to whether its result is apart."""
    task_id, name, queue, status, *rest = row
    return Ended(task_id, name, queue, Status(str(status)), *rest)  # type: ignore[arg-type]


def _due(rows: Rows) -> list[Due]:
    return [_one_due(*row) for row in rows]


def _one_due(
    delivery_id: UUID,
    owner: str,
    address: str,
    host: str,
    attempt: int,
    at: datetime,
    owed_seconds: float,
    salt: bytes | None,
    proof: bytes | None,
    previous_salt: bytes | None,
    previous_proof: bytes | None,
    *task: object,
) -> Due:
    secrets = tuple(
        KeptSecret(bytes(one), bytes(other))
        for one, other in ((salt, proof), (previous_salt, previous_proof))
        if one is not None and other is not None
    )
    over = None if task[0] is None else ended(task)
    return Due(delivery_id, owner, address, host, attempt, at, owed_seconds, secrets, over)
