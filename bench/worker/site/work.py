"""The task."""

from __future__ import annotations

from bench.tally import count
from tasks_app.tasks import task


@task(name="bench.nothing")
async def nothing() -> bool:
    """Counts itself. The others keep no results; ours is charged for one."""
    count()
    return True
