"""The history of one task, as the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, Func, IntegerField, TextField, When
from django.db.models.functions import Cast, Left

from tasks_app import conf
from tasks_app.admin.display import duration, instant, percent
from tasks_app.models import TaskEvent
from tasks_app.models.status import EventKind

# Milestones of a task are folded to about this many (MAX_EVENTS), so that nearly always the whole history fits.
SHOWN_ROWS = 1_000
_SHOWN_CHARACTERS = 500
# Stored size up to which a milestone's data is read at all; a thousand large ones would be a page of a gigabyte.
_READ_BYTES = 8_192


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of a task. `gap` is the time since the version before it, empty for the first one known."""

    version: int
    kind: str
    at: str
    gap: str
    attempt: int
    progress: str
    message: str
    data: str


@dataclass(frozen=True, slots=True)
class History:
    """The newest entries, newest first. `is_cut` says that there are older ones."""

    entries: Sequence[Entry]
    is_cut: bool


def history(task_id: UUID) -> History:
    """Read the history of `task_id`."""
    size = Func("data", function="pg_column_size", output_field=IntegerField())
    rows = list(
        TaskEvent.objects.using(conf.current().DATABASE)
        .filter(task_id=task_id)
        .order_by("-version")
        .annotate(size=size)
        .values_list(
            "version",
            "kind",
            "at",
            "attempt",
            "progress",
            Left("message", _SHOWN_CHARACTERS),
            Case(
                When(size__lte=_READ_BYTES, then=Left(Cast("data", TextField()), _SHOWN_CHARACTERS))
            ),
            "size",
        )[: SHOWN_ROWS + 1]
    )
    earlier = [row[2] for row in rows[1:]] + [None]
    entries = [_entry(row, before) for row, before in zip(rows, earlier, strict=True)]
    return History(entries[:SHOWN_ROWS], is_cut=len(entries) > SHOWN_ROWS)


def _entry(row: tuple[Any, ...], before: datetime | None) -> Entry:
    version, kind, at, attempt, progress, message, data, size = row
    return Entry(
        version=version,
        kind=dict(EventKind.choices).get(kind, kind),
        at=instant(at),
        gap="" if before is None else duration(at - before),
        attempt=attempt,
        progress="" if progress is None else percent(progress),
        message=message,
        data=f"{size:,} bytes" if data is None and size is not None else data or "",
    )
