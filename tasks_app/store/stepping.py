"""The verbs that read what earlier attempts recorded. `commit` writes it."""

from __future__ import annotations

from uuid import UUID

from tasks_app.store.call import Call


def read_step(task_id: UUID, name: str) -> Call[str | None]:
    """The recorded result of one step, as JSON text; None: that step was not done yet."""
    return Call(
        "read_step", {"id": task_id, "name": name}, lambda rows: rows[0][0] if rows else None
    )


def read_steps(task_id: UUID) -> Call[dict[str, str]]:
    """Every recorded result of a task, as JSON text by the step's name."""
    return Call("read_steps", {"id": task_id}, lambda rows: {row[0]: row[1] for row in rows})
