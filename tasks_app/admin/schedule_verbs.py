"""Pause, resume and run now: through the store, one schedule at a time, or the reason why not."""

from __future__ import annotations

import json
from functools import partial

from django.db import transaction

from tasks_app import conf
from tasks_app.admin.accounting import Steered
from tasks_app.limits import new_task_id
from tasks_app.models import Schedule
from tasks_app.store import NewTask, enqueue, pause_schedule
from tasks_app.store.announcer import announcer
from tasks_app.store.driver import run


def pause(schedule: Schedule) -> Steered:
    """Let its ticks pass without tasks."""
    if run(pause_schedule(schedule.pk, paused=True)):
        return Steered(schedule.name, "Paused {them}")
    return Steered(schedule.name, skipped="already paused")


def resume(schedule: Schedule) -> Steered:
    """Let its ticks make tasks again, from the next one on."""
    if run(pause_schedule(schedule.pk, paused=False)):
        return Steered(schedule.name, "Resumed {them}")
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
    return Steered(schedule.name, "Ran {them}", new_id=new.id)
