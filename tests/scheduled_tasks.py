"""A task that is due every second."""

from __future__ import annotations

from tasks_app.schedules import schedule
from tasks_app.tasks import task


@task(name="scheduled.tick")
async def tick(word: str) -> str:
    """Says it."""
    return word


schedule(tick, "* * * * * *", timezone="Europe/Berlin", args=["tock"])
