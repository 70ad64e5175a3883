"""The demo task: real work on real input, without a network.

It takes seconds, has four stages, and what it finds is true. The first two are steps, kept with the
task: when its worker dies later, the next attempt begins with the third.
"""

from __future__ import annotations

from typing import Any

from asyncpoll.inspection import inspect
from tasks_app.tasks import current_task, step_sync, task


@task(
    name="demo.dependency_report",
    queue="default",
    timeout=600,
    max_attempts=3,
    retry_on=(OSError,),
    expose=True,
)
def dependency_report(limit: int | None = None) -> dict[str, Any]:
    """Inspect the distributions installed in this Python, at most `limit` of them by name.

    Gathers their metadata, normalises names and licences, re-hashes each file that RECORD lists,
    looks for unlisted files and unmet requirements, and returns a JSON report well under 1 MiB.
    Where it looks is not the caller's to choose. Stops between two files when it is cancelled.
    Raises `ValueError` for a limit below 1, which no other attempt would mend: only what the disk
    does is tried again.
    """
    here = current_task()
    return inspect(None, limit, here.report, check=here.raise_if_cancelled, take=step_sync)
