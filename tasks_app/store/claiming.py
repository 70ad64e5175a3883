"""The verbs of claiming: who has ready tasks, how many run, and taking some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from tasks_app.store.call import Call, json_text
from tasks_app.store.rows import Claimed

# A scan that finds more owners than this goes on from the last of them the next time.
MOST_LANES = 1_000


class Lane(NamedTuple):
    """The ready tasks of one owner on one queue, the most urgent first."""

    queue: str
    owner: str


class Share(NamedTuple):
    """How many tasks of a lane to take at most."""

    lane: Lane
    quota: int


def lanes(
    queues: Sequence[str] | None,
    excluded: Sequence[str] = (),
    seen: Mapping[str, str] | None = None,
) -> Call[list[Lane]]:
    """The lanes of `queues` (None: of every queue but the `excluded`), in turn.

    `seen` gives, by queue, the owner after whom to begin. At most MOST_LANES a queue are given.
    """
    seen = seen or {}
    return Call(
        "lanes",
        {
            "queues": None if queues is None else list(queues),
            "excluded": list(excluded),
            "seen_queues": list(seen),
            "seen_owners": list(seen.values()),
            "most": MOST_LANES,
        },
        lambda rows: [Lane(*row) for row in rows],
    )


def claim(worker: UUID, shares: Sequence[Share], lease_seconds: float) -> Call[list[Claimed]]:
    """Take from each lane up to its quota of ready tasks, the most urgent of each."""
    return Call(
        "claim",
        {
            "worker": worker,
            "shares": json_text(
                [
                    {"queue": lane.queue, "owner": lane.owner, "quota": quota}
                    for lane, quota in shares
                ]
            ),
            "lease": lease_seconds,
        },
        lambda rows: [Claimed(*row[:-1]) for row in rows],
    )


def running() -> Call[dict[Lane, int]]:
    """How many attempts hold a task now, by queue and owner."""
    return Call("running", {}, lambda rows: {Lane(row[0], row[1]): row[2] for row in rows})


def lock_claims() -> Call[None]:
    """Wait until no other claim that heeds a limit is under way, and keep others waiting until the transaction ends."""
    return Call("lock_claims", {}, lambda rows: None)
