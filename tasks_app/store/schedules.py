"""The verbs of recurring schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tasks_app.limits import HEAD_START_SECONDS
from tasks_app.store.call import Call, Rows


@dataclass(frozen=True, slots=True)
class DeclaredSchedule:
    """A schedule as the code declares it. `args` and `kwargs` are JSON text."""

    name: str
    task: str
    cron: str
    timezone: str
    queue: str
    owner: str
    priority: int
    args: str
    kwargs: str
    max_attempts: int
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class NextTick:
    """When an active schedule ticks next."""

    name: str
    cron: str
    timezone: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick that has come. `task_id` is the id of the task to be, `next_at` the tick that follows."""

    name: str
    at: datetime
    next_at: datetime
    task_id: UUID


@dataclass(frozen=True, slots=True)
class Ticked:
    """A tick that made a task."""

    name: str
    at: datetime
    task_id: UUID


def declare_schedules(
    schedules: Sequence[tuple[DeclaredSchedule, datetime]],
) -> Call[None]:
    """Make `schedules` active as they are declared, each with the tick that it would start at."""
    declared = [schedule for schedule, _ in schedules]
    return Call(
        "declare_schedules",
        {
            "names": [schedule.name for schedule in declared],
            "tasks": [schedule.task for schedule in declared],
            "crons": [schedule.cron for schedule in declared],
            "timezones": [schedule.timezone for schedule in declared],
            "queues": [schedule.queue for schedule in declared],
            "owners": [schedule.owner for schedule in declared],
            "priorities": [schedule.priority for schedule in declared],
            "args": [schedule.args for schedule in declared],
            "kwargs": [schedule.kwargs for schedule in declared],
            "max_attempts": [schedule.max_attempts for schedule in declared],
            "timeouts": [float(schedule.timeout_seconds) for schedule in declared],
            "next_ticks": [next_tick for _, next_tick in schedules],
        },
        lambda rows: None,
    )


def keep_schedules(
    names: Sequence[str], fresh_seconds: float, lapse_seconds: float
) -> Call[tuple[set[str], list[str]]]:
    """Say that a process declares `names`; whose last word is younger than `fresh_seconds` is left as it is.

    Gives those of `names` that are active, and the other ones that lapsed after `lapse_seconds` without a word.
    """
    return Call(
        "keep_schedules",
        {"names": list(names), "fresh": fresh_seconds, "lapse": lapse_seconds},
        lambda rows: (
            {name for name, is_kept in rows if is_kept},
            [name for name, is_kept in rows if not is_kept],
        ),
    )


def read_schedules(names: Sequence[str]) -> Call[tuple[datetime, list[NextTick]]]:
    """The database's time, and the next tick of each of `names` that is active."""
    return Call("read_schedules", {"names": list(names)}, _next_ticks)


def tick(ticks: Sequence[Tick]) -> Call[list[Ticked]]:
    """Move schedules past ticks that have come, and enqueue their tasks. Gives the ticks that made one."""
    return Call(
        "tick",
        {
            "head_start": HEAD_START_SECONDS,
            "names": [each.name for each in ticks],
            "ticks": [each.at for each in ticks],
            "next_ticks": [each.next_at for each in ticks],
            "task_ids": [each.task_id for each in ticks],
        },
        lambda rows: [Ticked(*row[:-1]) for row in rows],
    )


def pause_schedule(schedule_id: int, paused: bool) -> Call[bool]:
    """Let a schedule's ticks pass without tasks, or no longer. False: it was so before, or is unknown."""
    return Call("pause_schedule", {"id": schedule_id, "paused": paused}, bool)


def _next_ticks(rows: Rows) -> tuple[datetime, list[NextTick]]:
    return rows[0][0], [NextTick(*row[1:]) for row in rows if row[1] is not None]
