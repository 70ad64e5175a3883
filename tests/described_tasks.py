"""A task that whoever knows nothing but its name can submit."""

from __future__ import annotations

from tasks_app.tasks import task


@task(name="described.nothing", expose=True)
def nothing() -> None:
    """Does it."""
