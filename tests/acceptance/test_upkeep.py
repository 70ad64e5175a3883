"""Upkeep in real processes: servers alone, and several of everything."""

from __future__ import annotations

import os
import signal
from typing import Any
from uuid import uuid4

import pytest

from tasks_app import store
from tasks_app.store import Lane, Share
from tests import sample_tasks
from tests.acceptance.processes import server, started
from tests.acceptance.workers import Queue
from tests.support import eventually

SCHEDULED = {"DJANGO_SETTINGS_MODULE": "tests.scheduled_settings"}


@pytest.mark.parametrize("kind", ["daphne", "uvicorn", "granian"])
def test_servers_alone_look_after_the_table(kind: str, queue: Queue) -> None:
    """Expired leases, due tasks, schedules and old tasks: there is no worker of ours in this fleet."""
    died, old, due = (sample_tasks.add.prepare([number], {}) for number in range(3))
    queue.run(store.enqueue([died]))
    queue.run(store.claim(uuid4(), [Share(Lane("default", ""), 1)], 15.0))
    queue.run(store.enqueue([old, due]))
    queue.run(store.cancel(old.id))
    queue.execute(
        "UPDATE tasks_app_task SET finished_at = CASE WHEN id = %s THEN now() - interval '31 days' END, "
        "lease_expires_at = CASE WHEN id = %s THEN now() - interval '1 min' END, ready = false",
        old.id,
        died.id,
    )
    with server(kind, queue.url, **SCHEDULED):
        eventually(lambda: queue.ask("SELECT 1 FROM tasks_app_task WHERE failures = 1"))
        eventually(
            lambda: queue.ask("SELECT 1 FROM tasks_app_task WHERE ready AND id = %s", due.id)
        )
        eventually(lambda: not queue.ask("SELECT 1 FROM tasks_app_task WHERE id = %s", old.id))
        eventually(lambda: queue.ask("SELECT 1 FROM tasks_app_task WHERE name = 'scheduled.tick'"))


def test_each_tick_is_run_once_by_servers_and_workers_of_which_one_is_killed(
    queue: Queue,
) -> None:
    """The others go on with the next tick; no two of them ever run the same one."""

    def ticks() -> list[Any]:
        rows = queue.ask(
            "SELECT run_at FROM tasks_app_task WHERE name = 'scheduled.tick' ORDER BY run_at",
        )
        return [run_at for (run_at,) in rows]

    with (
        server("daphne", queue.url, **SCHEDULED),
        started(["manage.py", "runworker"], queue.url, **SCHEDULED) as doomed,
        started(["manage.py", "runworker"], queue.url, **SCHEDULED),
    ):
        eventually(lambda: len(queue.ask("SELECT 1 FROM tasks_app_workerprocess")) == 2)
        before = len(ticks())
        eventually(lambda: len(ticks()) >= before + 3)
        os.kill(doomed.pid, signal.SIGKILL)
        before = len(ticks())
        eventually(lambda: len(ticks()) >= before + 3)
        eventually(
            lambda: queue.ask(
                "SELECT 1 FROM tasks_app_task WHERE status = 'SUCCESS' AND result = '\"tock\"'",
            )
        )
    made = ticks()
    assert len(set(made)) == len(made)
    assert {moment.microsecond for moment in made} == {0}
