"""`schedule`: have a task enqueued again and again, once at each tick of a cron expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from tasks_app.cron import next_tick
from tasks_app.declaration import Task
from tasks_app.errors import InvalidSchedule
from tasks_app.limits import MAX_NAME_LENGTH
from tasks_app.store import DeclaredSchedule

_schedules: dict[str, DeclaredSchedule] = {}


def schedule(
    task: Task[..., Any],
    cron: str,
    *,
    timezone: str | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> None:
    """Have `task` enqueued at each tick of `cron` on the clocks of `timezone` (the project's TIME_ZONE), once however
    many processes run. Write it below the task, where every worker and server imports it:

        schedule(send_report, "30 7 * * MON-FRI", timezone="Europe/Berlin", kwargs={"region": "eu"})

    Ticks that nobody was there for are made up for by one run. `name`, by default the task's, is the schedule's own;
    `task.using(queue=…, owner=…)` says how it is enqueued. Raises InvalidSchedule, InvalidArguments or NotJson.
    """
    call = task.prepare(args, kwargs or {})
    declared = DeclaredSchedule(
        name=task.name if name is None else name,
        task=call.name,
        cron=" ".join(cron.split()),
        timezone=timezone or settings.TIME_ZONE,
        queue=call.queue,
        owner=call.owner,
        priority=call.priority,
        args=call.args,
        kwargs=call.kwargs,
        max_attempts=call.max_attempts,
        timeout_seconds=call.timeout_seconds,
    )
    for broken, rule in _broken_rules(declared, task):
        if broken:
            raise InvalidSchedule(f"Schedule {declared.name!r}: {rule}")
    try:
        next_tick(declared.cron, declared.timezone, datetime.now(UTC))
    except InvalidSchedule as error:
        raise InvalidSchedule(f"Schedule {declared.name!r}: {error}") from None
    _schedules[declared.name] = declared


def declared() -> list[DeclaredSchedule]:
    """Every schedule that this process knows, by name."""
    return sorted(_schedules.values(), key=lambda each: each.name)


def _broken_rules(declared: DeclaredSchedule, task: Task[..., Any]) -> list[tuple[bool, str]]:
    known = _schedules.get(declared.name, declared)
    return [
        (not declared.name, "name is empty; leave it out to use the task's."),
        ("\x00" in declared.name, "a name can't contain NUL."),
        (
            len(declared.name) > MAX_NAME_LENGTH,
            f"name has {len(declared.name)} characters; at most {MAX_NAME_LENGTH} fit.",
        ),
        (
            len(declared.cron) > MAX_NAME_LENGTH,
            f"cron has {len(declared.cron)} characters; at most {MAX_NAME_LENGTH} fit.",
        ),
        (task.run_at is not None, "run_at is set; a schedule says itself when to run."),
        (
            known != declared,
            f"{known.task!r} has one of that name; give one of them another name=.",
        ),
    ]
