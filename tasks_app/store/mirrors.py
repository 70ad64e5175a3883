"""The verbs of mirrors: tasks that another system, such as Celery, runs and gives its own ids."""

from __future__ import annotations

from uuid import UUID

from tasks_app.store.call import Call
from tasks_app.store.verbs import OUTSIDE_WORKER


def begin(task_id: UUID) -> Call[int | None]:
    """Start another attempt at a task that no worker of ours holds. Gives its number; None: a worker's, over, or unknown."""
    return Call(
        "begin",
        {"id": task_id, "worker": OUTSIDE_WORKER},
        lambda rows: rows[0][0] if rows else None,
    )
