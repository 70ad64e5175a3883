"""A Celery app as a project has one."""

from __future__ import annotations

import os
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from celery import Celery
from celery.exceptions import Ignore

from tasks_app.contrib.celery import mirror

BROKER_VARIABLE = "ASYNCPOLL_TEST_BROKER"
OWNER_HEADER = "asyncpoll_owner"

app = Celery("tests", broker=os.environ.get(BROKER_VARIABLE, "memory://"), set_as_current=False)
app.conf.update(
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    worker_lost_wait=0.2,
)
mirrored = mirror(app, owner=lambda headers: headers.get(OWNER_HEADER, ""))


@app.task
def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


@app.task
def fail() -> None:
    """Raises."""
    raise ValueError("no paper\x00")


@app.task(bind=True, max_retries=1)
def second_time(self: Any, countdown: float) -> str:
    """Succeeds when it is tried again."""
    if not self.request.retries:
        raise self.retry(exc=ValueError("not yet"), countdown=countdown)
    return "at last"


@app.task(bind=True)
def reporting(self: Any, seen: str) -> str:
    """Says how far it is, and waits until the test has seen that: then there is a file of that name."""
    from tasks_app.tasks import notify_step_completed

    notify_step_completed(self.request.id, progress=0.5, message="half way")
    while not Path(seen).exists():
        time.sleep(0.02)
    return "seen"


@app.task
def moment() -> datetime:
    """Something that Celery's JSON can carry and ours can't."""
    return datetime(2030, 1, 1, tzinfo=UTC)


@app.task
def ignored() -> None:
    """Leaves its state to somebody else."""
    raise Ignore


@app.task(time_limit=1)
def endless() -> None:
    """Until its time limit ends the process."""
    time.sleep(600)


@app.task
def asleep() -> None:
    """Until somebody ends it."""
    time.sleep(600)


@app.task
def kills_its_process() -> None:
    """As the kernel does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)
