"""The verb behind lists: a page of one owner's tasks, whose cost has a bound whatever is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from asyncpoll.contract import Status
from tasks_app.store.call import Call, Rows
from tasks_app.store.rows import Snapshot, snapshot

# Rows that one page looks at. A filter that few rows pass makes shorter pages, and never a longer search.
_SPAN = 2_000
_HIGHEST_ID = UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True)
class Sought:
    """What a list is of; None: any. `owner` None sees everybody's."""

    owner: str | None
    status: Status | None = None
    name: str | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Tasks without their results, newest first, and the id that the next page begins below; None: this is the last."""

    tasks: Sequence[Snapshot]
    before: UUID | None


def list_tasks(sought: Sought, limit: int, before: UUID | None = None) -> Call[Page]:
    """Up to `limit` of the tasks below `before`; there may be fewer, or none, on a page that is not the last."""
    return Call(
        "list_tasks",
        {
            "owner": sought.owner,
            "status": None if sought.status is None else sought.status.value,
            "name": sought.name,
            "queue": sought.queue,
            "before": before or _HIGHEST_ID,
            "span": _SPAN,
            # One more says whether there is another page.
            "limit": limit + 1,
        },
        lambda rows: _page(rows, limit),
        # Planned for these very values: which of the filters are there decides on the index.
        prepare=False,
    )


def _page(rows: Rows, limit: int) -> Page:
    tasks = [snapshot(row[:-2]) for row in rows if row[-2]]
    if len(tasks) > limit:
        return Page(tasks[:limit], tasks[limit - 1].id)
    # The last row of a span ends the search, whether it matches or not.
    return Page(tasks, rows[-1][0] if rows and rows[-1][-1] else None)
