"""What waits, at a cost that does not grow with how much that is."""

from __future__ import annotations

from dataclasses import dataclass

from tasks_app.store.call import Call

# A look costs some tens of milliseconds at worst; whoever has more ready tasks than that learns nothing from the number.
_MOST_COUNTED = 10_000
_MOST_COUNTED_TOGETHER = 100_000
_MOST_QUEUES = 50
_MOST_OWNERS = 100


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The ready tasks of a queue: at least so many, and how long the first of each owner's line has been due, at most."""

    queue: str
    ready: int
    oldest_seconds: float


def depths() -> Call[list[QueueDepth]]:
    """The queues that have ready tasks, up to fifty, looking at up to a hundred owners of each.

    In a transaction that was hastened: after a burst, the planner still takes the queues for short, and would look at all
    of a long one.
    """
    return Call(
        "depths",
        {
            "most": _MOST_COUNTED_TOGETHER,
            "most_each": _MOST_COUNTED,
            "most_queues": _MOST_QUEUES,
            "most_owners": _MOST_OWNERS,
        },
        # Between the look for a queue and that at its lines, its last task may have been claimed.
        lambda rows: [QueueDepth(queue, ready, oldest or 0.0) for queue, ready, oldest in rows],
    )


def hasten(milliseconds: int) -> Call[None]:
    """For a transaction's other statements: each ends after so long, and none gathers more rows than it gives."""
    return Call("hasten", {"milliseconds": milliseconds}, lambda rows: None)


def clock() -> Call[float]:
    """The database's time, in seconds since 1970."""
    return Call("clock", {}, lambda rows: float(rows[0][0]))
