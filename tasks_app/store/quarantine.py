"""One row that nothing can be done with must not stop the work on all the others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

import psycopg

from tasks_app import conf
from tasks_app.events import emit
from tasks_app.store.call import Call
from tasks_app.store.pool import Pool

T = TypeVar("T")

# A counter that counted cannot get here in a task's life, and one that did is far from the column's end.
_MOST = 2_000_000_000


def quarantine() -> Call[dict[UUID, str]]:
    """End the tasks whose version or attempt is at the end of its column; gives them with the reason."""
    return Call(
        "quarantine",
        {"most": _MOST, "limited": conf.current().limits_running},
        lambda rows: {row[0]: row[1] for row in rows},
    )


async def despite_unfit(pool: Pool, work: Callable[[], Awaitable[T]]) -> T:
    """Do `work`, which is on many tasks. Where the database refuses it because of tasks that are unfit, these are ended
    and it is done once more. Raises what `work` raises."""
    try:
        return await work()
    except psycopg.DataError as error:
        ended = await pool.run(quarantine())
        for task_id, reason in ended.items():
            emit("task.unfit", id=task_id, error=error, reason=reason)
        if not ended:
            raise
    return await work()
