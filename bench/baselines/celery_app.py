"""Celery on Redis, with what its guide says of many short tasks: results that nobody reads are not kept.

celery -A bench.baselines.celery_app worker …
python -m bench.baselines.celery_app          produce
"""

from __future__ import annotations

import os

from celery import Celery

from bench import tally
from bench.producing import serve

app = Celery("bench", broker=os.environ["BENCH_BROKER_URL"])
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)


@app.task(name="bench.nothing")
def nothing() -> None:
    """Counts itself."""
    tally.count()


def _enqueue(count: int) -> None:
    for _ in range(count):
        nothing.delay()


if __name__ == "__main__":
    serve(_enqueue)
