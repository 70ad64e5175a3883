"""Cancel and run again: through the store, one task at a time, and an account of what became of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.db import transaction

from asyncpoll.contract import TERMINAL, Status
from tasks_app import conf
from tasks_app.models import Task
from tasks_app.models.task import new_task_id
from tasks_app.store import cancel as cancel_call
from tasks_app.store import delete as delete_call
from tasks_app.store import requeue as requeue_call
from tasks_app.store import run_again as run_again_call
from tasks_app.store.announcer import announcer
from tasks_app.store.driver import run

# More ids than this make a message nobody reads; the log has them all.
_NAMED_IDS = 10

CANCELLED = "Cancelled {tasks}"
ASKED_TO_STOP = "Asked {tasks} to stop"
RAN_AGAIN = "Ran {tasks} again"
REQUEUED = "Requeued {tasks}"
DELETED = "Deleted {tasks}"


@dataclass(frozen=True, slots=True)
class Steered:
    """What became of one task: `did`, a sentence about `{tasks}`, or `skipped`, the reason why nothing was done."""

    id: UUID
    did: str = ""
    skipped: str = ""
    new_id: UUID | None = None

    @property
    def log_line(self) -> str:
        """What the admin's log says about it."""
        said = self.did.format(tasks="it")
        return f"{said} as {self.new_id}." if self.new_id else f"{said}."

    @property
    def label(self) -> str:
        """The task's id, with that of the task that runs it again."""
        return f"{self.id} as {self.new_id}" if self.new_id else str(self.id)


Verb = Callable[[UUID], Steered]


def cancel(task_id: UUID) -> Steered:
    """End a PENDING task, ask a RUNNING one to stop."""
    committed = run(cancel_call(task_id))
    if committed is None:
        return Steered(task_id, skipped=_why_not_cancelled(*_look(task_id)))
    return Steered(task_id, CANCELLED if committed.status is Status.CANCELLED else ASKED_TO_STOP)


def run_again(task_id: UUID) -> Steered:
    """Enqueue a copy of a task that is over; its worker hears of it after the commit."""
    made = run(run_again_call(task_id, new_task_id()))
    if made is None:
        return Steered(task_id, skipped=_why_not_again(*_look(task_id)))
    new_id, queue = made
    transaction.on_commit(partial(announcer.announce, queue), using=conf.current().DATABASE)
    return Steered(task_id, RAN_AGAIN, new_id=new_id)


def requeue(task_id: UUID) -> Steered:
    """Put a RUNNING task back into its queue; what its attempt says from now on is dropped."""
    if run(requeue_call(task_id)) is not None:
        return Steered(task_id, REQUEUED)
    status, cancel_requested = _look(task_id)
    why = (
        "asked to stop"
        if cancel_requested
        else f"not running ({status})"
        if status
        else "not found"
    )
    return Steered(task_id, skipped=why)


def delete(task_id: UUID) -> Steered:
    """Delete a task with its history; whoever waits for it is told."""
    return (
        Steered(task_id, DELETED)
        if run(delete_call([task_id]))
        else Steered(task_id, skipped="not found")
    )


def steer(ids: Iterable[UUID], verb: Verb, log: Callable[[Task, str], object]) -> list[Steered]:
    """Do `verb` to each task; what was done is committed together with its line in the log.

    In the order of ids, in which every statement of the store locks rows.
    """
    wanted = sorted(set(ids))
    database = conf.current().DATABASE
    known = Task.objects.using(database).only("id", "name").in_bulk(wanted)
    results = []
    for task_id in wanted:
        with transaction.atomic(using=database):
            steered = verb(task_id)
            if steered.did:
                log(known.get(task_id) or Task(id=task_id), steered.log_line)
        results.append(steered)
    return results


def account(results: Iterable[Steered]) -> Iterator[tuple[bool, str]]:
    """Sentences that say what was done and what was skipped and why; each with: was it done?"""
    groups: dict[tuple[str, str], list[str]] = {}
    for steered in results:
        groups.setdefault((steered.did, steered.skipped), []).append(steered.label)
    for (did, skipped), labels in groups.items():
        tasks = f"{len(labels)} task{'' if len(labels) == 1 else 's'}"
        said = did.format(tasks=tasks) if did else f"Skipped {tasks}, {skipped}"
        yield bool(did), f"{said}: {_some(labels)}."


def _look(task_id: UUID) -> tuple[str, bool]:
    """The task's status ("" if there is no such task), and whether its cancel was asked for."""
    rows = Task.objects.using(conf.current().DATABASE).filter(pk=task_id)
    return rows.values_list("status", "cancel_requested").first() or ("", False)


def _why_not_cancelled(status: str, cancel_requested: bool) -> str:
    if not status:
        return "not found"
    if status in TERMINAL:
        return f"already over ({status})"
    return "already asked to stop" if cancel_requested else f"just changed ({status}), try again"


def _why_not_again(status: str, cancel_requested: bool) -> str:
    if not status:
        return "not found"
    return (
        f"just changed ({status}), try again" if status in TERMINAL else f"not over yet ({status})"
    )


def _some(labels: list[str]) -> str:
    named = ", ".join(labels[:_NAMED_IDS])
    return named if len(labels) <= _NAMED_IDS else f"{named} and {len(labels) - _NAMED_IDS} more"
