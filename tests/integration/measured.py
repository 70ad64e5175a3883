"""Tasks that ended at chosen moments after chosen durations, and their rollups."""

from __future__ import annotations

from typing import Any

from django.db import connection

from tasks_app.insights.sketch import GAMMA, SHORTEST_MS
from tasks_app.store import roll_up
from tasks_app.store.driver import run
from tasks_app.upkeep.rollups import LOOKS

# Of the test's own transaction, so that it is one hour all along.
NOW_HOUR = "date_trunc('hour', now(), 'UTC')"


def finished(
    when: str, ran_ms: list[float], name: str = "sample.add", status: str = "SUCCESS", **also: Any
) -> None:
    """Tasks that ended at the moment `when` (SQL), each after so many milliseconds, having waited a tenth of that."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO tasks_app_task (
                id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback,
                message, attempt, failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at,
                started_at, finished_at, cancel_requested)
            SELECT gen_random_uuid(), %(name)s, %(queue)s, '', 0, %(status)s, 3, '[]', '{{}}', '', '', '', '', 1, 0, 3, 60,
                false, at, at - ms * 1.1 * interval '1 ms', at - ms * 1.1 * interval '1 ms', at - ms * interval '1 ms', at,
                false
            FROM unnest(%(ran)s::float8[]) AS ms, (SELECT {when} AS at) AS t
            """,
            {"name": name, "queue": also.get("queue", "default"), "status": status, "ran": ran_ms},
        )


def hours_ago(hours: int, minutes: int = 30) -> str:
    """A moment within an hour that is over; from two on, for longer than the first look waits."""
    return f"{NOW_HOUR} - {hours} * interval '1 hour' + {minutes} * interval '1 minute'"


def roll(most_hours: int = 48) -> list[int]:
    """Roll up all that is due; how many tasks there were in each hour that had some, the latest first."""
    counts = []
    while (rolled := run(roll_up(most_hours, LOOKS, GAMMA, SHORTEST_MS))) is not None:
        counts.append(rolled.count)
    return [count for count in counts if count]
