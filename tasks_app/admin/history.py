"""The history of one task, as the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, Func, IntegerField, TextField, When
from django.db.models.functions import Cast, Left

from asyncpoll.contract import percent
from tasks_app import conf
from tasks_app.admin.display import duration, instant
from tasks_app.admin.quoting import Quotes
from tasks_app.models import TaskEvent
from tasks_app.models.status import EventKind

# Milestones of a task are folded to about this many (MAX_EVENTS), so that nearly always the whole history fits.
SHOWN_ROWS = 1_000
_SHOWN_CHARACTERS = 500
# Stored size up to which a milestone's data is read at all; a thousand large ones would be a page of a gigabyte.
_READ_BYTES = 8_192
# What ends an attempt; a request to cancel does not.
_ENDS = frozenset(
    {
        EventKind.RETRIED,
        EventKind.RELEASED,
        EventKind.RESCUED,
        EventKind.SUCCEEDED,
        EventKind.FAILED,
        EventKind.CANCELLED,
    }
)


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
class Try:
    """One attempt: who made it, and how far it came. `worker` None: nobody said."""

    attempt: int
    worker: UUID | None
    started: str
    ended: str
    took: str


@dataclass(frozen=True, slots=True)
class History:
    """The newest entries, newest first, and their attempts. `is_cut` says that there are older ones."""

    entries: Sequence[Entry]
    tries: Sequence[Try]
    is_cut: bool


def history(task_id: UUID, quotes: Quotes) -> History:
    """Read the history of `task_id`, without what it quotes of sensitive arguments."""
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
            "worker",
        )[: SHOWN_ROWS + 1]
    )
    earlier = [*(row[2] for row in rows[1:]), None]
    entries = [_entry(row, before, quotes) for row, before in zip(rows, earlier, strict=False)]
    return History(entries[:SHOWN_ROWS], _tries(rows), is_cut=len(entries) > SHOWN_ROWS)


def _tries(rows: Sequence[tuple[Any, ...]]) -> list[Try]:
    """Of rows from the newest on, newest attempt first; what came before an attempt's start belongs to the one before."""
    tries: list[Try] = []
    latest: tuple[Any, ...] | None = None
    for row in rows:
        latest = latest or row
        if row[1] == EventKind.STARTED:
            tries.append(_try(row, latest))
            latest = None
    return tries


def _try(start: tuple[Any, ...], latest: tuple[Any, ...]) -> Try:
    is_over = latest[1] in _ENDS
    return Try(
        attempt=start[3],
        worker=start[8],
        started=instant(start[2]),
        ended=_words(latest[1]) if is_over else "",
        took=duration(latest[2] - start[2]) if is_over else "",
    )


def _words(kind: str) -> str:
    return dict(EventKind.choices).get(kind, kind)


def _entry(row: tuple[Any, ...], before: datetime | None, quotes: Quotes) -> Entry:
    version, kind, at, attempt, progress, message, data, size, _ = row
    return Entry(
        version=version,
        kind=_words(kind),
        at=instant(at),
        gap="" if before is None else duration(at - before),
        attempt=attempt,
        progress="" if progress is None else percent(progress),
        message=quotes.hide(message, is_cut=len(message) == _SHOWN_CHARACTERS),
        data=_data(data, size, quotes),
    )


def _data(text: str | None, size: int | None, quotes: Quotes) -> str:
    if text is None:
        return "" if size is None else f"{size:,} bytes"
    return quotes.hide_json(text, is_cut=len(text) == _SHOWN_CHARACTERS)
