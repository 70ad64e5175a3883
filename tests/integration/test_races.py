"""A rescue, a commit and a cancel of the same rows at the same moment."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import connection

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.models import Task, TaskEvent
from tasks_app.store import Change, Milestone, dsn
from tasks_app.store.driver import run
from tests import sample_tasks
from tests.integration.claiming import claim_now

pytestmark = pytest.mark.django_db(transaction=True)

ROWS = 100


def expired_leases(worker: UUID) -> list[store.Claimed]:
    run(store.enqueue([sample_tasks.add.prepare([1], {}) for _ in range(ROWS)]))
    claimed = claim_now(ROWS, worker=worker)
    Task.objects.update(lease_expires_at="2020-01-01T00:00Z")
    return claimed


def success(claimed: store.Claimed) -> Change:
    milestone = Milestone("succeeded", 1.0)
    return Change(claimed.id, claimed.attempt, Status.SUCCESS, (milestone,), result="1")


def at_once(*works: Callable[[Any], Any]) -> list[Any]:
    """Do each on a connection of its own, all at the same moment; gives what each gave, or raises what one raised."""
    start = threading.Barrier(len(works))
    answers: list[Any] = [None] * len(works)

    def do(number: int) -> None:
        with psycopg.connect(**dsn.parameters("test"), autocommit=True) as own:

            def perform(call: store.Call[Any]) -> Any:
                return call.shape(own.execute(call.sql.encode(), call.params).fetchall())

            start.wait(20)
            try:
                answers[number] = works[number](perform)
            except psycopg.Error as error:
                answers[number] = error

    threads = [threading.Thread(target=do, args=[number]) for number in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answer in answers:
        if isinstance(answer, psycopg.Error):
            raise answer
    return answers


@pytest.mark.parametrize("turn", range(5))
def test_a_rescue_a_commit_and_a_cancel_have_one_winner_of_each_row_and_no_deadlock(
    turn: int,
) -> None:
    """Each in an order of its own; whoever comes second finds the row as the first has left it."""
    worker = uuid4()
    claimed = expired_leases(worker)
    changes = sorted(map(success, claimed), key=lambda change: change.task_id.int)

    def cancel_backwards(perform: Any) -> None:
        for task in reversed(claimed):
            perform(store.cancel(task.id))

    committed, rescued, _ = at_once(
        lambda perform: perform(store.commit(worker, changes)),
        lambda perform: perform(store.rescue(ROWS, 1.0, 1.0)),
        cancel_backwards,
    )
    won = Counter(task.id for task in (*committed, *rescued))
    assert set(won.values()) <= {1}
    for task in Task.objects.all():
        kinds = list(
            TaskEvent.objects.filter(task_id=task.id)
            .order_by("version")
            .values_list("kind", flat=True)
        )
        ends = [kind for kind in kinds if kind in ("succeeded", "rescued", "cancelled", "failed")]
        assert task.version == len(kinds)
        assert ("succeeded" in ends) == (task.status == "SUCCESS")
        assert ends.count("succeeded") + ends.count("cancelled") <= 1
        assert task.attempt == 1


def test_a_task_knows_its_worker_by_id_only() -> None:
    """A foreign key would lock the worker's row with each claim, and cost minutes at each migration."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f' AND "
            "(conrelid = 'tasks_app_task'::regclass OR confrelid = 'tasks_app_workerprocess'::regclass)"
        )
        assert cursor.fetchall() == []
