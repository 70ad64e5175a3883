"""What the clients of the traffic submit."""

from __future__ import annotations

from tasks_app.tasks import task


@task(name="bench.waited", queue="bench", timeout=86_400, max_attempts=1, expose=True)
def waited() -> None:
    """Ended by the measurement itself."""
