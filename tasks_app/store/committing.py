"""The verbs of a worker's outcomes: committing them, and finding out what became of a commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from asyncpoll.contract import Status
from tasks_app.limits import HEAD_START_SECONDS
from tasks_app.store.call import Call, json_text
from tasks_app.store.rows import Change, Committed, committed


def commit(
    worker: UUID, changes: Sequence[Change], *, reoffer: bool = False, anywhere: bool = False
) -> Call[list[Committed]]:
    """Make `changes` (at most one per task) visible. A task missing from the answer was fenced off, or somebody else has
    its row locked: `holds` tells. `reoffer`: wake the workers of its queue when a task no longer runs; `anywhere`: those
    of every queue, when it is somebody's."""
    earlier = [event for change in changes for event in _earlier(change)]
    steps = [step for change in changes for step in _steps(change)]
    makes_room = reoffer or anywhere or any(c.status is Status.PENDING for c in changes)
    # Each part costs its making ready, also where it finds nothing to do: together a tenth of the commit of one change.
    parts: dict[str, object] = {"earlier": earlier, "steps": steps, "room": makes_room}
    return Call(
        "commit",
        {
            "worker": worker,
            "head_start": HEAD_START_SECONDS,
            "reoffer": reoffer,
            "anywhere": anywhere,
            "changes": json_text([_facts(change) for change in changes]),
            "earlier": json_text(earlier),
            "steps": json_text(steps),
        },
        committed,
        without=tuple(part for part, has_work in parts.items() if not has_work),
    )


def holds(worker: UUID, changes: Sequence[Change]) -> Call[set[UUID]]:
    """The tasks of those of `changes` whose attempt holds its task: what was not committed of them can be, later."""
    return Call(
        "holds",
        {
            "worker": worker,
            "ids": [change.task_id for change in changes],
            "attempts": [change.attempt for change in changes],
        },
        lambda rows: {row[0] for row in rows},
    )


def find_committed(changes: Sequence[tuple[Change, int]]) -> Call[list[Committed]]:
    """Those of `changes` that are in effect, each looked for after the version that its attempt was last told of."""
    return Call(
        "find_committed",
        {
            "ids": [change.task_id for change, _ in changes],
            "attempts": [change.attempt for change, _ in changes],
            "kinds": [change.milestones[-1].kind for change, _ in changes],
            "afters": [version for _, version in changes],
        },
        committed,
    )


def _facts(change: Change) -> dict[str, Any]:
    """The change and its last milestone, without what is as in most changes."""
    last = change.milestones[-1]
    facts: dict[str, Any] = {
        "id": change.task_id,
        "attempt": change.attempt,
        "status": change.status,
        "kind": last.kind,
        "bump": len(change.milestones),
        "progress": last.progress,
        "result": change.result,
    }
    if last.message:
        facts["message"] = last.message
    if last.data is not None:
        facts["data"] = last.data
    if change.error_type or change.failed or change.delay_seconds:
        facts |= {
            "error_type": change.error_type,
            "error_message": change.error_message,
            "error_class": change.error_class,
            "traceback": change.traceback,
            "failed": int(change.failed),
            "wait": change.delay_seconds,
        }
    return facts


def _earlier(change: Change) -> list[dict[str, Any]]:
    return [
        {
            "id": change.task_id,
            "ordinal": ordinal,
            "kind": milestone.kind,
            "progress": milestone.progress,
            "message": milestone.message,
            "data": milestone.data,
        }
        for ordinal, milestone in enumerate(change.milestones[:-1], 1)
    ]


def _steps(change: Change) -> list[dict[str, Any]]:
    return [
        {"id": change.task_id, "name": milestone.step.name, "result": milestone.step.result}
        for milestone in change.milestones
        if milestone.step is not None
    ]
