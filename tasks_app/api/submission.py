"""Submitting over HTTP: only exposed tasks, and only within the bounds of their declaration."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.utils import timezone
from ninja import Schema
from pydantic import AwareDatetime, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from tasks_app import catalogue
from tasks_app.api.beside import LARGE_BYTES, beside_the_loop
from tasks_app.api.notices import Notice
from tasks_app.api.numbers import WholeNumber
from tasks_app.declaration import Task
from tasks_app.errors import OutOfBounds, UnknownTask
from tasks_app.limits import MAX_NAME_LENGTH, MIN_PRIORITY, SHORTEST_SECONDS
from tasks_app.store import NewTask

# A task due later than this is more likely a mistake in the year than a plan.
_LATEST_DAYS = 3_660


class Submission(Schema):
    """The body of POST /tasks."""

    model_config = ConfigDict(extra="forbid")

    task: StrictStr = Field(max_length=MAX_NAME_LENGTH)
    args: list[Any] = Field(default_factory=list)
    kwargs: dict[str, Any] = Field(default_factory=dict)
    queue: StrictStr | None = None
    priority: WholeNumber | None = None
    run_at: AwareDatetime | None = None
    max_attempts: WholeNumber | None = None
    timeout_seconds: StrictFloat | StrictInt | None = None
    notify: Notice | None = None


async def prepare(asked: Submission, owner: str, size: int) -> NewTask:
    """The row that a submission of `size` bytes asks for. Raises UnknownTask, InvalidArguments, NotJson or OutOfBounds."""
    declared = _exposed(asked.task)
    _check_bounds(asked, declared)
    bound = declared.using(owner=owner, queue=asked.queue or declared.queue)
    # What it takes to check a schema is a matter of the schema more than of the size.
    if declared.is_external or size > LARGE_BYTES:
        return await beside_the_loop(partial(_prepare, asked, bound))
    return _prepare(asked, bound)


def _prepare(asked: Submission, declared: Task[Any, Any]) -> NewTask:
    new = declared.prepare_json(asked.args, asked.kwargs)
    return replace(
        new,
        priority=declared.priority if asked.priority is None else asked.priority,
        max_attempts=asked.max_attempts or new.max_attempts,
        timeout_seconds=float(asked.timeout_seconds or new.timeout_seconds),
        # By this machine's clock only what is over by any clock; the rest the database decides.
        run_at=None if asked.run_at is None or _days_ahead(asked.run_at) < -1 else asked.run_at,
    )


def _exposed(name: str) -> Task[Any, Any]:
    declared = catalogue.exposed(name)
    if declared is None:
        raise UnknownTask(
            f"There is no task {name!r} that can be submitted; check the name, or declare it with expose=True."
        )
    return declared


def _check_bounds(asked: Submission, declared: Task[Any, Any]) -> None:
    queues = sorted({declared.queue, *declared.queues})
    _within(
        asked.queue in (None, *queues),
        "queue",
        asked.queue,
        f"{'one of ' if len(queues) > 1 else ''}{', '.join(queues)}",
    )
    _within(
        asked.priority is None or MIN_PRIORITY <= asked.priority <= max(declared.priority, 0),
        "priority",
        asked.priority,
        f"between {MIN_PRIORITY} and {max(declared.priority, 0)}",
    )
    _within(
        asked.max_attempts is None or 1 <= asked.max_attempts <= declared.attempts_allowed,
        "max_attempts",
        asked.max_attempts,
        f"between 1 and {declared.attempts_allowed}",
    )
    _within(
        asked.timeout_seconds is None
        or SHORTEST_SECONDS <= asked.timeout_seconds <= declared.time_limit_seconds,
        "timeout_seconds",
        asked.timeout_seconds,
        f"at least {SHORTEST_SECONDS} and at most {declared.time_limit_seconds}",
    )
    _within(
        asked.run_at is None or _days_ahead(asked.run_at) <= _LATEST_DAYS,
        "run_at",
        asked.run_at,
        f"at most {_LATEST_DAYS} days ahead",
    )


def _days_ahead(moment: datetime) -> float:
    return (moment - timezone.now()).total_seconds() / 86_400


def _within(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise OutOfBounds(f"{name} is {value}; this task allows {rule}.", name)
