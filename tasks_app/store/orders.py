"""The verbs of actions over all that a filter matches: counted, placed, and done in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from asyncpoll.contract import Status
from tasks_app import conf
from tasks_app.store.call import Call
from tasks_app.store.listing import Sought
from tasks_app.store.rows import Committed, committed

MOST_COUNTED: Final = 100_000
"""Of more tasks nobody can have meant all, or means a script."""


@dataclass(frozen=True, slots=True)
class Taken:
    """An order that is being carried out: `before` is where its next batch begins, going to ever older tasks."""

    id: UUID
    verb: str
    sought: Sought
    before: UUID
    counted: int
    done: int
    skipped: int
    placed_by: str

    @property
    def left(self) -> int:
        """How many more tasks it may touch."""
        return self.counted - self.done - self.skipped


def count_sought(sought: Sought, newest: UUID) -> Call[int]:
    """How many tasks older than `newest` match; MOST_COUNTED + 1 stands for more."""
    return Call(
        "count_sought",
        {**_filter(sought), "newest": newest, "most": MOST_COUNTED + 1},
        _only,
        # Planned for these very values: the status decides on the index.
        prepare=False,
    )


def place_order(
    order: UUID, verb: str, sought: Sought, newest: UUID, counted: int, placed_by: str
) -> Call[None]:
    """Have `verb` done to the `counted` tasks that match, all of them older than `newest`."""
    facts = {"id": order, "verb": verb, "newest": newest, "counted": counted}
    return Call(
        "place_order", {**_filter(sought), **facts, "placed_by": placed_by}, lambda rows: None
    )


def take_order() -> Call[Taken | None]:
    """The oldest order that is not over, for this transaction alone."""
    return Call("take_order", {}, lambda rows: _taken(*rows[0]) if rows else None)


def record_order(
    order: Taken, before: UUID, done: int, skipped: int, *, ended: bool, note: str = ""
) -> Call[None]:
    """What a batch came to, and whether it was the last."""
    facts = {"cursor": before, "done": done, "skipped": skipped, "ended": ended, "note": note}
    return Call("record_order", {"id": order.id, **facts}, lambda rows: None)


def requeue(task_id: UUID) -> Call[Committed | None]:
    """Put a RUNNING task back into its queue. None: it does not run, or was asked to stop."""
    return Call(
        "requeue",
        {"id": task_id, "limited": conf.current().limits_running},
        lambda rows: next(iter(committed(rows)), None),
    )


def _filter(sought: Sought) -> dict[str, Any]:
    status = None if sought.status is None else sought.status.value
    return {"owner": sought.owner, "status": status, "name": sought.name, "queue": sought.queue}


def _taken(order: UUID, verb: str, owner: str | None, status: str | None, *rest: Any) -> Taken:
    name, queue, before, *tally = rest
    sought = Sought(owner, None if status is None else Status(status), name, queue)
    return Taken(order, verb, sought, before, *tally)


def _only(rows: Sequence[tuple[Any, ...]]) -> Any:
    return rows[0][0]
