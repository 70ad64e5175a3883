"""Cancel, run again, requeue and delete: through the store, one task at a time, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from uuid import UUID

from django.db import transaction

from asyncpoll.contract import TERMINAL, Status
from tasks_app import conf
from tasks_app.admin.accounting import Steered
from tasks_app.limits import new_task_id
from tasks_app.models import Task
from tasks_app.store import cancel as cancel_call
from tasks_app.store import delete as delete_call
from tasks_app.store import requeue as requeue_call
from tasks_app.store import run_again as run_again_call
from tasks_app.store.announcer import announcer
from tasks_app.store.driver import run

_GONE = "not found"


def found(ids: Iterable[UUID]) -> list[Task]:
    """The tasks of these ids, as far as they are known; in the order of ids, in which the store locks rows."""
    wanted = sorted(set(ids))
    known = Task.objects.using(conf.current().DATABASE).only("id", "name").in_bulk(wanted)
    return [known.get(task_id) or Task(id=task_id) for task_id in wanted]


def cancel(task: Task) -> Steered:
    """End a PENDING task, ask a RUNNING one to stop."""
    committed = run(cancel_call(task.pk))
    if committed is None:
        return Steered(str(task.pk), skipped=_why_not_cancelled(*_look(task)))
    was_ended = committed.status is Status.CANCELLED
    return Steered(str(task.pk), "Cancelled {them}" if was_ended else "Asked {them} to stop")


def run_again(task: Task) -> Steered:
    """Enqueue a copy of a task that is over; its worker hears of it after the commit."""
    made = run(run_again_call(task.pk, new_task_id()))
    if made is None:
        return Steered(str(task.pk), skipped=_why_not_again(*_look(task)))
    new_id, queue = made
    transaction.on_commit(partial(announcer.announce, queue), using=conf.current().DATABASE)
    return Steered(str(task.pk), "Ran {them} again", new_id=new_id)


def requeue(task: Task) -> Steered:
    """Put a RUNNING task back into its queue; what its attempt says from now on is dropped."""
    if run(requeue_call(task.pk)) is not None:
        return Steered(str(task.pk), "Requeued {them}")
    return Steered(str(task.pk), skipped=_why_not_requeued(*_look(task)))


def delete(task: Task) -> Steered:
    """Delete a task with its history; whoever waits for it is told."""
    if run(delete_call([task.pk])):
        return Steered(str(task.pk), "Deleted {them}")
    return Steered(str(task.pk), skipped=_GONE)


def _look(task: Task) -> tuple[str, bool]:
    """The task's status ("" if there is no such task), and whether its cancel was asked for."""
    rows = Task.objects.using(conf.current().DATABASE).filter(pk=task.pk)
    return rows.values_list("status", "cancel_requested").first() or ("", False)


def _why_not_cancelled(status: str, cancel_requested: bool) -> str:
    if not status:
        return _GONE
    if status in TERMINAL:
        return f"already over ({status})"
    return "already asked to stop" if cancel_requested else f"just changed ({status}), try again"


def _why_not_again(status: str, cancel_requested: bool) -> str:
    if not status:
        return _GONE
    return (
        f"just changed ({status}), try again" if status in TERMINAL else f"not over yet ({status})"
    )


def _why_not_requeued(status: str, cancel_requested: bool) -> str:
    if not status:
        return _GONE
    return "asked to stop" if cancel_requested else f"not running ({status})"
