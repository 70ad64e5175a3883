"""Workers whose machine has another time than the database: only the database's counts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tasks_app import store
from tests import sample_tasks
from tests.acceptance.workers import Queue, runworker
from tests.databases import created
from tests.support import eventually

CLOCK = Path(__file__).resolve().parents[1] / "shifted_clock"
TEN_MINUTES = 600


@pytest.fixture(scope="module", params=[-TEN_MINUTES, TEN_MINUTES], ids=["slow", "fast"])
def off(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment of a process whose clock is ten minutes off."""
    return {
        "DJANGO_SETTINGS_MODULE": "tests.scheduled_settings",
        "PYTHONPATH": str(CLOCK),
        "SHIFT_SECONDS": str(request.param),
    }


@pytest.fixture(scope="module")
def shared_queue(off: dict[str, str], migrated_template: str) -> Iterator[Queue]:
    """Of two workers that are off."""
    with (
        created(os.environ["DATABASE_URL"], migrated_template) as url,
        Queue(url) as queue,
        runworker(queue, **off),
        runworker(queue, **off),
    ):
        yield queue


def seconds_late(queue: Queue, task: UUID) -> float:
    """By the database's clock: how long after it was due the task began."""
    ((late,),) = queue.ask(
        "SELECT extract(epoch FROM started_at - run_at)::float8 FROM tasks_app_task WHERE id = %s",
        task,
    )
    return late


def enqueue_in(queue: Queue, seconds: float) -> UUID:
    """A task that is due so much later, by the database's clock."""
    ((run_at,),) = queue.ask("SELECT clock_timestamp() + make_interval(secs => %s)", seconds)
    new = sample_tasks.add.using(run_at=run_at).prepare([1], {})
    queue.run(store.enqueue([new]))
    return new.id


def test_the_clock_of_the_test_is_off(
    shared_queue: Queue, off: dict[str, str], tmp_path: Path
) -> None:
    """Or nothing else here would be a test."""
    mark, queue = tmp_path / "mark", shared_queue
    queue.enqueue(sample_tasks.leave_time, str(mark))
    eventually(mark.exists)
    theirs = [float(line) for line in eventually(mark.read_text).split()]
    for moment in theirs:
        assert abs(moment - time.time() - float(off["SHIFT_SECONDS"])) < 60


def test_a_task_keeps_its_lease_and_its_time_limit(shared_queue: Queue, tmp_path: Path) -> None:
    """It runs for two leases, beside a worker whose clock is right and that would rescue it."""
    mark, queue = tmp_path / "mark", shared_queue
    task = queue.enqueue(sample_tasks.leave_mark, str(mark), 3.0)
    eventually(mark.exists)
    with runworker(queue, DJANGO_SETTINGS_MODULE="tests.scheduled_settings"):
        eventually(lambda: queue.state(task)[0] == "SUCCESS")
    assert queue.state(task)[:3] == ("SUCCESS", 1, 0)
    assert queue.kinds(task) == ["enqueued", "started", "succeeded"]


def test_a_killed_workers_task_is_rescued_when_its_lease_ends(
    queue: Queue, off: dict[str, str], tmp_path: Path
) -> None:
    """Neither at once nor in ten minutes; and the worker that rescues it is off as well."""
    mark = tmp_path / "mark"
    with runworker(queue, **off) as doomed:
        task = queue.enqueue(sample_tasks.hang_once, str(mark))
        eventually(mark.exists)
        doomed.send_signal(signal.SIGKILL)
        doomed.wait()
    with runworker(queue, **off):
        eventually(lambda: queue.state(task)[0] == "SUCCESS")
    assert queue.kinds(task) == ["enqueued", "started", "rescued", "started", "succeeded"]
    ((unleased, waited),) = queue.ask(
        "SELECT extract(epoch FROM r.at - s.at)::float8, extract(epoch FROM n.at - r.at)::float8 "
        "FROM tasks_app_taskevent s, tasks_app_taskevent r, tasks_app_taskevent n "
        "WHERE s.task_id = %s AND r.task_id = s.task_id AND n.task_id = s.task_id "
        "AND (s.version, r.version, n.version) = (2, 3, 4)",
        task,
    )
    assert 1.5 < unleased < 60
    assert 0 <= waited < 60


def test_a_delayed_task_starts_when_it_is_due(shared_queue: Queue) -> None:
    """Not ten minutes early, not ten minutes late."""
    task = enqueue_in(shared_queue, 2.0)
    later = enqueue_in(shared_queue, 300.0)
    eventually(lambda: shared_queue.state(task)[0] == "SUCCESS")
    assert shared_queue.state(later) == ("PENDING", 0, 0, None)
    assert 0 <= seconds_late(shared_queue, task) < 60


def test_a_schedule_ticks_at_the_databases_time(shared_queue: Queue) -> None:
    """Each second once, and no tick is made for a time that is still to come."""
    ticks = "SELECT run_at, created_at FROM tasks_app_task WHERE name = 'scheduled.tick'"
    eventually(lambda: len(shared_queue.ask(ticks)) >= 3)
    rows = shared_queue.ask(ticks)
    assert len({run_at for run_at, _ in rows}) == len(rows)
    for run_at, created_at in rows:
        assert 0 <= (created_at - run_at).total_seconds() < 60
