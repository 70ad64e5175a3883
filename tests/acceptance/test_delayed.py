"""Tasks for later, stored by another process: they start when due, not at the next poll."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import IO, Any

import pytest

from tests.acceptance.processes import server
from tests.acceptance.workers import ROOT, Queue, runworker
from tests.support import eventually

FAR = {"ASYNCPOLL_WORKER_POLL_SECONDS": "3600"}
ENQUEUE = """
import sys
import django; django.setup()
from datetime import timedelta
from django.db import connection, transaction
from tests.sample_tasks import add
for line in sys.stdin:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            [[now]] = cursor.fetchall()
        add.using(run_at=now + timedelta(seconds=1.5)).enqueue(1)
"""


@pytest.fixture
def elsewhere(queue: Queue) -> Iterator[IO[str]]:
    """For each line, another process stores a task for in a second and a half, in a transaction."""
    environment = {"DATABASE_URL": queue.url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    with subprocess.Popen(
        [sys.executable, "-c", ENQUEUE],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        assert process.stdin is not None
        yield process.stdin
    assert process.returncode == 0


def looking_after(kind: str, queue: Queue) -> AbstractContextManager[Any]:
    if kind == "worker":
        return runworker(queue, **FAR)
    return server("daphne", queue.url, **FAR)


@pytest.mark.parametrize("kind", ["worker", "server"])
def test_a_task_that_another_process_stored_for_later_is_let_in_when_due(
    kind: str, queue: Queue, elsewhere: IO[str]
) -> None:
    """Twice: after the first, whoever looks after the table would sleep for an hour."""
    let_in = "SELECT 1 FROM tasks_app_task WHERE ready OR status = 'SUCCESS'"
    with looking_after(kind, queue):
        for number in (1, 2):
            elsewhere.write("another\n")
            eventually(lambda number=number: len(queue.ask(let_in)) == number)
        if kind == "worker":
            eventually(
                lambda: (
                    queue.ask("SELECT count(*) FROM tasks_app_task WHERE finished_at >= run_at")
                    == [(2,)]
                )
            )
