"""Tasks for later, stored by another process: they start when due, not at the next poll."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.acceptance.processes import server
from tests.acceptance.workers import ROOT, Queue, runworker
from tests.support import eventually

FAR = {"ASYNCPOLL_WORKER_POLL_SECONDS": "3600"}
ENQUEUE = """
import django; django.setup()
from datetime import timedelta
from django.db import connection, transaction
from tests.sample_tasks import add
with transaction.atomic():
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        [[now]] = cursor.fetchall()
    add.using(run_at=now + timedelta(seconds=1.5)).enqueue(1)
"""


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    return Queue(database_url)


def enqueue_elsewhere(queue: Queue) -> None:
    """A process that stores a task for in a second and a half, in a transaction, and ends."""
    environment = {"DATABASE_URL": queue.url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    subprocess.run(
        [sys.executable, "-c", ENQUEUE], cwd=ROOT, env={**os.environ, **environment}, check=True
    )


def looking_after(kind: str, queue: Queue) -> AbstractContextManager[Any]:
    if kind == "worker":
        return runworker(queue, **FAR)
    return server("daphne", queue.url, **FAR)


@pytest.mark.parametrize("kind", ["worker", "server"])
def test_a_task_that_another_process_stored_for_later_is_let_in_when_due(
    kind: str, queue: Queue
) -> None:
    """Twice: after the first, whoever looks after the table would sleep for an hour."""
    let_in = "SELECT 1 FROM tasks_app_task WHERE ready OR status = 'SUCCESS'"
    with looking_after(kind, queue):
        for number in (1, 2):
            enqueue_elsewhere(queue)
            eventually(lambda number=number: len(queue.ask(let_in)) == number)
        if kind == "worker":
            eventually(
                lambda: (
                    queue.ask("SELECT count(*) FROM tasks_app_task WHERE finished_at >= run_at")
                    == [(2,)]
                )
            )
