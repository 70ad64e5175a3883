"""The task."""

from __future__ import annotations

from bench.tally import count
from tasks_app.tasks import task


@task(name="bench.nothing")
async def nothing() -> None:
    """Counts itself."""
    count()
