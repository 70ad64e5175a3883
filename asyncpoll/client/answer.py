"""What the server said, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from asyncpoll.client.documents import Unreadable, milliseconds, number
from asyncpoll.client.errors import Misused, TaskFailed
from asyncpoll.client.given import canonical, is_id, shown
from asyncpoll.contract import Outcome, Status

# What the database counts up to.
_LARGEST_COUNT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Answer:
    """A task as one answer showed it. `result` is there once it is SUCCESS, `error` once it is FAILED."""

    task_id: str
    status: Status
    version: int
    progress: float | None = None
    message: str = ""
    result: Any = None
    error: Mapping[str, Any] | None = None
    outcome: Outcome | None = None
    stalled: bool = False
    reset: bool = False
    backoff_ms: int = 0
    poll_ticket: str | None = field(default=None, repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_terminal(self) -> bool:
        """True when the task is over."""
        return self.status.is_terminal

    @property
    def succeeded(self) -> bool:
        """True when it is over and has a result."""
        return self.status is Status.SUCCESS

    @property
    def cursor(self) -> str:
        """Where to go on: save it, and give it to `wait` or `watch` later."""
        return f"{self.task_id}:{self.version}"

    def raise_for_failure(self) -> Answer:
        """Give the answer itself, or raise TaskFailed if the task is FAILED or CANCELLED."""
        if self.status in (Status.FAILED, Status.CANCELLED):
            raise TaskFailed(self)
        return self


@dataclass(frozen=True, slots=True)
class Milestone:
    """One entry of a task's history. `gap` says that some before it are not kept any more."""

    task_id: str
    version: int
    kind: str
    at: str
    attempt: int
    progress: float | None
    message: str
    data: Any
    gap: bool
    answer: Answer = field(repr=False)


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """The end of a task that somebody asked to be told of, until it is acknowledged."""

    id: str
    task_id: str
    status: Status
    result: Any = None
    error: Mapping[str, Any] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def read_answer(document: Mapping[str, Any]) -> Answer:
    """The task in a document. Raises Unreadable where it is not what the protocol promises."""
    return Answer(
        task_id=_task_id(document),
        status=_status(document),
        version=_count(document, "version"),
        progress=number(document.get("progress")),
        message=str(document.get("message") or ""),
        result=document.get("result"),
        error=_object(document.get("error")),
        outcome=_outcome(document.get("outcome")),
        stalled=document.get("stalled") is True,
        reset=document.get("reset") is True,
        backoff_ms=int(milliseconds(document, "recommended_client_backoff_ms") or 0),
        poll_ticket=_ticket(document.get("poll_ticket")),
        raw=document,
    )


def read_milestones(document: Mapping[str, Any], answer: Answer) -> tuple[Milestone, ...]:
    """The `events` of a document, oldest first, which say nothing of gaps yet."""
    events = document.get("events")
    if not isinstance(events, list):
        raise Unreadable(f"events is {events!r:.80}; it must be a list")
    return tuple(_milestone(event, answer) for event in events)


def read_entries(document: Mapping[str, Any]) -> tuple[InboxEntry, ...]:
    """The entries of an inbox."""
    entries = document.get("entries")
    if not isinstance(entries, list):
        raise Unreadable(f"entries is {entries!r:.80}; it must be a list")
    return tuple(map(_entry, entries))


def split_cursor(cursor: str) -> tuple[str, int]:
    """Task id and version of a saved cursor. Raises Misused."""
    task_id, _, version = str(cursor).rpartition(":")
    if not task_id or not version.isdecimal() or len(version) > len(str(_LARGEST_COUNT)):
        raise Misused(
            f"cursor is {shown(cursor)}; give the `cursor` of an earlier answer: ID:VERSION."
        )
    return canonical(task_id), int(version)


def _milestone(event: Any, answer: Answer) -> Milestone:
    if not isinstance(event, dict):
        raise Unreadable(f"an event is {event!r:.80}; it must be an object")
    return Milestone(
        task_id=answer.task_id,
        version=_count(event, "version"),
        kind=str(event.get("kind") or ""),
        at=str(event.get("at") or ""),
        attempt=_count(event, "attempt") if event.get("attempt") is not None else 0,
        progress=number(event.get("progress")),
        message=str(event.get("message") or ""),
        data=event.get("data"),
        gap=False,
        answer=answer,
    )


def _entry(entry: Any) -> InboxEntry:
    return InboxEntry(
        id=_text(entry, "id"),
        task_id=_task_id(entry),
        status=_status(entry),
        result=entry.get("result"),
        error=_object(entry.get("error")),
        raw=entry,
    )


def _object(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, dict) else None


def _ticket(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _task_id(document: Any) -> str:
    task_id = _text(document, "task_id")
    if not is_id(task_id):
        raise Unreadable(f"task_id is {task_id!r:.80}; it must be short and printable")
    return task_id


def _text(document: Any, name: str) -> str:
    value = document.get(name) if isinstance(document, dict) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise Unreadable(f"{name} is {value!r:.80}; it must be a text")
    return value


def _count(document: Mapping[str, Any], name: str) -> int:
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_COUNT:
        raise Unreadable(f"{name} is {value!r:.80}; it must be a whole number from 0")
    return value


def _status(document: Mapping[str, Any]) -> Status:
    try:
        return Status(str(document.get("status")))
    except ValueError as error:
        raise Unreadable(
            f"status is {document.get('status')!r:.80}; it must be one of {', '.join(Status)}"
        ) from error


def _outcome(value: Any) -> Outcome | None:
    """An outcome that a later server may have invented is none that we know."""
    return Outcome(value) if isinstance(value, str) and value in set(Outcome) else None
