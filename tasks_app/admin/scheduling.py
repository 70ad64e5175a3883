"""Pause, resume and run now: through the store, one schedule at a time, and an account of what became of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import transaction

from tasks_app import conf
from tasks_app.models import Schedule
from tasks_app.models.task import new_task_id
from tasks_app.store import NewTask, enqueue, pause_schedule
from tasks_app.store.announcer import announcer
from tasks_app.store.driver import run


@dataclass(frozen=True, slots=True)
class Steered:
    """What became of one schedule: `did`, a word for what was done, or `skipped`, the reason why nothing was."""

    name: str
    did: str = ""
    skipped: str = ""
    task_id: UUID | None = None

    @property
    def label(self) -> str:
        """The schedule's name, with the task that it made."""
        return f"{self.name} as {self.task_id}" if self.task_id else self.name


Verb = Callable[[Schedule], Steered]


def pause(schedule: Schedule) -> Steered:
    """Let its ticks pass without tasks."""
    if run(pause_schedule(schedule.pk, paused=True)):
        return Steered(schedule.name, did="Paused")
    return Steered(schedule.name, skipped="already paused")


def resume(schedule: Schedule) -> Steered:
    """Let its ticks make tasks again, from the next one on."""
    if run(pause_schedule(schedule.pk, paused=False)):
        return Steered(schedule.name, did="Resumed")
    return Steered(schedule.name, skipped="not paused")


def run_now(schedule: Schedule) -> Steered:
    """Enqueue its task once more; its ticks stay as they are. Workers hear of it after the commit."""
    if not schedule.active:
        return Steered(schedule.name, skipped="no longer declared")
    new = NewTask(
        id=new_task_id(),
        name=schedule.task,
        queue=schedule.queue,
        owner=schedule.owner,
        priority=schedule.priority,
        args=json.dumps(schedule.args),
        kwargs=json.dumps(schedule.kwargs),
        max_attempts=schedule.max_attempts,
        timeout_seconds=schedule.timeout_seconds,
    )
    run(enqueue([new]))
    transaction.on_commit(partial(announcer.announce, new.queue), using=conf.current().DATABASE)
    return Steered(schedule.name, did="Ran", task_id=new.id)


def steer(
    schedules: Iterable[Schedule], verb: Verb, log: Callable[[Schedule, str], object]
) -> list[Steered]:
    """Do `verb` to each; what was done is committed together with its line in the log."""
    results = []
    for schedule in schedules:
        with transaction.atomic(using=conf.current().DATABASE):
            steered = verb(schedule)
            if steered.did:
                as_task = f" as {steered.task_id}" if steered.task_id else ""
                log(schedule, f"{steered.did} it{as_task}.")
        results.append(steered)
    return results


def account(results: Iterable[Steered]) -> Iterator[tuple[bool, str]]:
    """Sentences that say what was done and what was skipped and why; each with: was it done?"""
    groups: dict[tuple[str, str], list[str]] = {}
    for steered in results:
        groups.setdefault((steered.did, steered.skipped), []).append(steered.label)
    for (did, skipped), labels in groups.items():
        schedules = f"{len(labels)} schedule{'' if len(labels) == 1 else 's'}"
        said = f"{did} {schedules}" if did else f"Skipped {schedules}, {skipped}"
        yield bool(did), f"{said}: {', '.join(labels)}."
