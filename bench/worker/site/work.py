"""The tasks."""

from __future__ import annotations

import time

from bench.tally import count
from tasks_app.tasks import current_task, task


@task(name="bench.nothing")
async def nothing() -> bool:
    """Counts itself. The others keep no results; ours is charged for one."""
    count()
    return True


@task(name="bench.constant")
async def constant() -> bool:
    """Nothing at all."""
    return True


@task(name="bench.until_cancelled")
def until_cancelled() -> float:
    """Looks every millisecond whether it shall stop; gives when it saw that, on the clock of the whole machine."""
    while not current_task().cancelled:
        time.sleep(0.001)
    return time.monotonic()
