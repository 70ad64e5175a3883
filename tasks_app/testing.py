"""For the tests of a project that uses tasks: run what is pending right here, without a worker.

Works inside Django's `TestCase`, whose transaction never commits: everything goes through Django's own connection, in
the calling thread. Retries do not wait for their delay, and time limits are not applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from asgiref.sync import async_to_sync
from django.db import connections
from psycopg.pq import TransactionStatus

from asyncpoll.contract import Status
from tasks_app import catalogue, conf, store
from tasks_app.claiming.turns import Turns
from tasks_app.context import running
from tasks_app.declaration import TaskHandle
from tasks_app.errors import Cancelled, UnknownTask
from tasks_app.queues import outside
from tasks_app.stepbook import StepBook, known
from tasks_app.store import Change, Claimed, Milestone, Snapshot
from tasks_app.store.driver import run
from tasks_app.store.results import adopted
from tasks_app.worker.calls import acall, call
from tasks_app.worker.milestones import join, progress_milestone, step_milestone
from tasks_app.worker.outcome import Ending, conclude
from tasks_app.worker.runnable import Runnable, find

__all__ = ["run_pending", "wait_for"]

# A task that enqueues itself would keep a test running for ever.
_MOST_ATTEMPTS = 1_000
# Far longer than a test: nothing here extends a lease, and nobody may rescue what is being run.
_LEASE_SECONDS = 86_400.0


def run_pending(limit: int = _MOST_ATTEMPTS, queues: Sequence[str] | None = None) -> list[Snapshot]:
    """Run what is due, and what that enqueues, retries included, until nothing is left or `limit` attempts were made.

    `queues` None means every queue. Gives the tasks that were run, in order of their first attempt, as they are now.
    """
    ran: dict[UUID, None] = {}
    for _ in range(limit):
        task_id = _run_next(queues)
        if task_id is None:
            break
        ran[task_id] = None
    now = run(store.read(list(ran)))
    return [now[task_id] for task_id in ran if task_id in now]


def wait_for(task: TaskHandle | UUID | str) -> Snapshot:
    """Run what is pending until `task` has ended, and give it. Raises AssertionError when it can't end here."""
    task_id = task.id if isinstance(task, TaskHandle) else UUID(str(task))
    for _ in range(_MOST_ATTEMPTS):
        snapshot = run(store.read([task_id])).get(task_id)
        if snapshot is None:
            raise AssertionError(
                f"There is no task {task_id} on this connection; enqueue it in the test, and with enqueue(): "
                "aenqueue() commits on a connection of its own."
            )
        if snapshot.is_terminal:
            return _with_result(snapshot)
        if _run_next(None) is None:
            raise AssertionError(_why_stuck(snapshot))
    raise AssertionError(
        f"Task {task_id} has not ended after {_MOST_ATTEMPTS} attempts at pending tasks; does a task enqueue itself?"
    )


def _run_next(queues: Sequence[str] | None) -> UUID | None:
    """Claim one task, run it, store its outcome. None: nothing was due."""
    worker = uuid4()
    run(store.promote(_MOST_ATTEMPTS))
    turns = Turns(credit=0)
    turns.learn(run(store.lanes(queues, outside())))
    batch = run(store.claim(worker, turns.allot(1), _LEASE_SECONDS))
    if not batch:
        return None
    claimed = _told(batch[0])
    runnable = _find(claimed)
    change = _attempt(claimed, runnable)
    committed = run(store.commit(worker, [change]))
    if runnable.ended is not None and committed and committed[0].status.is_terminal:
        runnable.ended(change, committed[0], "")
    return claimed.id


def _told(claimed: Claimed) -> Claimed:
    if not claimed.backend:
        return claimed
    return claimed._replace(adopted=run(adopted([claimed.id])).get(claimed.id))


def _find(claimed: Claimed) -> Runnable:
    try:
        return find(claimed)
    except UnknownTask as error:
        return Runnable(partial(_raise, error), is_async=False)


def _raise(error: Exception, *args: Any, **kwargs: Any) -> None:
    raise error


def _attempt(claimed: Claimed, runnable: Runnable) -> Change:
    here = _Here(claimed)
    token = running.set(here)
    try:
        ending = _call(claimed, runnable)
    finally:
        running.reset(token)
    change = conclude(claimed, ending, catalogue.retry_policy)
    assert change is not None
    return here.with_reports(change._replace(delay_seconds=0.0))


def _call(claimed: Claimed, runnable: Runnable) -> Ending:
    with _Savepoint():
        if runnable.began is not None:
            runnable.began()
        if runnable.is_async:
            return async_to_sync(acall)(claimed, runnable.func)
        return call(claimed, runnable.func)


class _Steps(StepBook):
    """What earlier attempts recorded, and what this one does: kept until it ends, as its reports are."""

    def __init__(self, recorded: dict[str, str], reports: list[Milestone]) -> None:
        super().__init__()
        self._recorded = recorded
        self._reports = reports

    def find(self, name: str) -> Future[str | None]:
        """What is known is at hand."""
        return known(self._recorded.get(name))

    def record(self, name: str, result: str) -> Future[None]:
        """Keep it among the reports."""
        self._recorded[name] = result
        self._reports.append(step_milestone(name, result))
        return known(None)


class _Here:
    """What `current_task()` gives: reports are kept until the attempt ends, since nobody else can see them before."""

    def __init__(self, claimed: Claimed) -> None:
        self.id = claimed.id
        self.name = claimed.name
        self.owner = claimed.owner
        self.attempt = claimed.attempt
        self.cancelled = claimed.cancel_requested
        self._reports: list[Milestone] = []
        self.steps: StepBook = _Steps(_recorded(claimed), self._reports)

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled if the task was asked to stop before this attempt began."""
        if self.cancelled:
            raise Cancelled(self.name, self.id)

    def report(
        self, progress: float | None = None, message: str = "", data: dict[str, Any] | None = None
    ) -> None:
        """Keep a milestone. Each becomes a version: nothing is folded."""
        self._reports.append(progress_milestone(progress, message, data))

    def with_reports(self, change: Change) -> Change:
        """`change` with all that was reported before it."""
        if not self._reports:
            return change
        reported = Change(change.task_id, change.attempt, Status.RUNNING, tuple(self._reports))
        return join(reported, change)


def _recorded(claimed: Claimed) -> dict[str, str]:
    return run(store.read_steps(claimed.id)) if claimed.attempt > 1 else {}


class _Savepoint:
    """A worker commits each statement of a task on its own, so an error in one leaves the others alone. Inside a
    test's transaction it would end them all: then the attempt's writes are rolled back, and the test goes on."""

    def __enter__(self) -> None:
        self._connection = connections[conf.current().DATABASE]
        self._savepoint = None
        if self._connection.in_atomic_block:
            self._savepoint = self._connection.savepoint()

    def __exit__(self, *error: object) -> None:
        if self._savepoint is None:
            return
        if _is_broken(self._connection):
            self._connection.savepoint_rollback(self._savepoint)
            self._connection.needs_rollback = False
        else:
            self._connection.savepoint_commit(self._savepoint)


def _is_broken(connection: Any) -> bool:
    status = connection.connection.info.transaction_status
    return connection.needs_rollback or status == TransactionStatus.INERROR


def _with_result(snapshot: Snapshot) -> Snapshot:
    if not snapshot.result_apart:
        return snapshot
    results = run(store.read_results([snapshot.id]))
    return replace(snapshot, result=results.get(snapshot.id), result_apart=False)


def _why_stuck(snapshot: Snapshot) -> str:
    reason = {
        Status.PENDING: "it is not due yet (its run_at lies ahead)",
        Status.RUNNING: "somebody else is running it",
    }[snapshot.status]
    return (
        f"Task {snapshot.name} {snapshot.id} can't end here: it is {snapshot.status}, and {reason}."
    )
