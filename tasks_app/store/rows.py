"""What goes into the store and what comes out: frozen values.

Those that a worker makes for each task are named tuples, which are made in a fifth of a frozen dataclass's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from asyncpoll.contract import Status

# A machine's clock may be off so much; a hint too many costs one claim that finds nothing.
_CLOCKS_APART = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be stored. `args` and `kwargs` are JSON text; `run_at` None means now."""

    id: UUID
    name: str
    queue: str
    owner: str
    priority: int
    args: str
    kwargs: str
    max_attempts: int
    timeout_seconds: float
    run_at: datetime | None = None
    retried_from: UUID | None = None
    trace_context: str | None = None
    backend: str = ""

    @property
    def is_due(self) -> bool:
        """True when workers should hear of it now. By this machine's clock: a hint, the database decides."""
        return self.run_at is None or self.run_at <= datetime.now(UTC) + _CLOCKS_APART


class Claimed(NamedTuple):
    """An attempt that this worker may now run. `args` and `kwargs` are JSON text, `attempt` is its fence.

    `backend` is the alias in TASKS that a task of Django's Tasks framework was enqueued through, "" for the others, and
    `adopted` JSON text: what `store.results` tells of those.
    """

    id: UUID
    name: str
    queue: str
    owner: str
    args: str
    kwargs: str
    attempt: int
    failures: int
    max_attempts: int
    timeout_seconds: float
    version: int
    cancel_requested: bool
    trace_context: str | None
    queue_wait_seconds: float
    backend: str = ""
    adopted: str | None = None


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step of a task gave, to be kept for later attempts. `result` is JSON text."""

    name: str
    result: str


class Milestone(NamedTuple):
    """One version of a task to be. `kind` is a value of `EventKind`; `data` is JSON text."""

    kind: str
    progress: float | None = None
    message: str = ""
    data: str | None = None
    step: StepResult | None = None


class Change(NamedTuple):
    """What one attempt has to say: its milestones, and where they leave the task.

    RUNNING means milestones only; PENDING gives the task back after `delay_seconds`. `failed` counts the attempt as a
    failure. `result` is JSON text. One version is made per milestone.
    """

    task_id: UUID
    attempt: int
    status: Status
    milestones: tuple[Milestone, ...]
    result: str | None = None
    error_type: str = ""
    error_message: str = ""
    error_class: str = ""
    traceback: str = ""
    failed: bool = False
    delay_seconds: float = 0.0

    @property
    def ends_attempt(self) -> bool:
        """True when the attempt is over with this change."""
        return self.status is not Status.RUNNING


class Committed(NamedTuple):
    """A change that became visible. `status` may be CANCELLED where a retry was asked of a cancelled task."""

    id: UUID
    status: Status
    version: int


class Rescued(NamedTuple):
    """A task whose attempt was ended by others. `waited_seconds` is from when that attempt was due to its start."""

    id: UUID
    status: Status
    version: int
    name: str
    queue: str
    attempt: int
    ran_seconds: float
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A task as it was read. `result` is JSON text; `result_apart` says it is large and has to be read by itself."""

    id: UUID
    name: str
    queue: str
    owner: str
    status: Status
    version: int
    progress: float | None
    message: str
    attempt: int
    error_type: str
    error_message: str
    stalled: bool
    cancel_requested: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: str | None = None
    result_apart: bool = False
    trace_context: str | None = None
    """JSON text."""

    @property
    def is_terminal(self) -> bool:
        """True when the task is over."""
        return self.status.is_terminal


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """What a worker process says of itself with each heartbeat."""

    id: UUID
    hostname: str
    pid: int
    queues: tuple[str, ...]
    concurrency: int


ENDINGS: Mapping[Status, str] = MappingProxyType(
    {Status.SUCCESS: "succeeded", Status.FAILED: "failed", Status.CANCELLED: "cancelled"}
)
"""The kind of the event that ends a task, by the status it ends in."""


_STATUSES = {status.value: status for status in Status}


def committed(rows: Sequence[tuple[Any, ...]]) -> list[Committed]:
    """Rows that begin with id, status and version."""
    return [Committed(row[0], _STATUSES[row[1]], row[2]) for row in rows]


def snapshot(row: tuple[Any, ...]) -> Snapshot:
    """A row of `read.sql` as a Snapshot."""
    identity, name, queue, owner, status, *rest = row
    return Snapshot(identity, name, queue, owner, _STATUSES[status], *rest)


def first_snapshot(new: NewTask, created_at: datetime) -> Snapshot:
    """A task as it was stored, before anybody touched it."""
    return Snapshot(
        id=new.id,
        name=new.name,
        queue=new.queue,
        owner=new.owner,
        status=Status.PENDING,
        version=1,
        progress=None,
        message="",
        attempt=0,
        error_type="",
        error_message="",
        stalled=False,
        cancel_requested=False,
        created_at=created_at,
        started_at=None,
        finished_at=None,
        trace_context=new.trace_context,
    )
