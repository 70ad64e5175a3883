"""Tasks in each state, made by the store's own verbs, for the tests of the admin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.urls import reverse

from asyncpoll.contract import Status
from tasks_app.models import Schedule, Task
from tasks_app.models.task import new_task_id
from tasks_app.store import (
    Change,
    Claimed,
    DeclaredSchedule,
    Milestone,
    NewTask,
    Sought,
    WorkerFacts,
    cancel,
    commit,
    declare_schedules,
    enqueue,
    fill_inboxes,
    heartbeat,
    lock_task,
    make_token,
    place_order,
    promise,
    run_again,
)
from tasks_app.store.driver import run
from tasks_app.tokens import issue
from tasks_app.webhooks.targets import INBOX, webhook
from tests.integration.claiming import claim_now

LIST = "admin:tasks_app_task_changelist"
WORKER = WorkerFacts(uuid4(), "host-1", 4711, ("default", "mail"), 8)


def page(task_id: UUID | str) -> str:
    """The address of a task's page."""
    return reverse("admin:tasks_app_task_change", args=[task_id])


def pending(
    name: str = "sample.add", owner: str = "acme", queue: str = "default", **values: Any
) -> UUID:
    """A PENDING task."""
    new = NewTask(
        id=new_task_id(),
        name=name,
        queue=queue,
        owner=owner,
        priority=0,
        args=values.pop("args", "[]"),
        kwargs=values.pop("kwargs", "{}"),
        max_attempts=3,
        timeout_seconds=600.0,
        **values,
    )
    run(enqueue([new]))
    return new.id


def running(**values: Any) -> Claimed:
    """A RUNNING task, held by WORKER. Nothing else may be waiting."""
    pending(**values)
    run(heartbeat(WORKER, [], 15.0))
    [claimed] = claim_now(worker=WORKER.id)
    return claimed


def said(
    claimed: Claimed, *milestones: Milestone, status: Status = Status.RUNNING, **end: Any
) -> UUID:
    """What the worker reports of its attempt."""
    run(commit(WORKER.id, [Change(claimed.id, claimed.attempt, status, milestones, **end)]))
    return claimed.id


def succeeded(result: str = '{"sum": 3}', **values: Any) -> UUID:
    """A task in SUCCESS."""
    end = Milestone("succeeded", 1.0)
    return said(running(**values), end, status=Status.SUCCESS, result=result)


def failed(message: str = "no route", **values: Any) -> UUID:
    """A task in FAILED."""
    return said(
        running(**values),
        Milestone("failed", None, message),
        status=Status.FAILED,
        error_type="OSError",
        error_message=message,
        traceback=f"Traceback …\nOSError: {message}",
        failed=True,
    )


def status_of(task_id: UUID) -> str:
    """The status in the row."""
    return Task.objects.values_list("status", flat=True).get(pk=task_id)


def declared(name: str = "nightly", **values: object) -> Schedule:
    """A schedule as a process has declared it, with these `values` in its row."""
    facts = DeclaredSchedule(
        name=name,
        task="sample.add",
        cron="30 2 * * *",
        timezone="Europe/Berlin",
        queue="mail",
        owner="ann",
        priority=3,
        args="[1]",
        kwargs='{"b": "<b>"}',
        max_attempts=2,
        timeout_seconds=9.0,
    )
    run(declare_schedules([(facts, datetime.now(UTC) + timedelta(hours=1))]))
    Schedule.objects.filter(name=name).update(**values)
    return Schedule.objects.get(name=name)


def scenery() -> None:
    """Something of everything that the admin shows."""
    done = succeeded(name="sample.sign_in", args='["ann", "hunter2"]')
    for target in (INBOX, webhook("https://hooks.example.com/in")):
        with transaction.atomic():
            run(lock_task(done))
            run(promise(done, target))
    run(fill_inboxes(100))
    failed()
    cancelled = pending()
    run(cancel(cancelled))
    said(running(queue="mail"), Milestone("progress", 0.5, "half of it", '{"n": 1}'))
    run(run_again(done, new_task_id()))
    declared()
    run(make_token(issue("ann", ["read"], 3_600.0, "phone").new))
    run(place_order(new_task_id(), "cancel", Sought(None, queue="mail"), new_task_id(), 1, "ann"))
