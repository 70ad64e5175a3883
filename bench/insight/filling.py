"""A month of finished tasks, of which only the last hours are rows."""

from __future__ import annotations

from typing import Final

from bench.store import StoreConnection
from tasks_app.insights.sketch import GAMMA, SHORTEST_MS
from tasks_app.store import fold_day, roll_up
from tasks_app.upkeep.rollups import FOLD_AFTER_DAYS, LOOKS, MOST_HOURS

TYPES: Final = 20
HOURS: Final = 30 * 24
ROW_HOURS: Final = 3
# Of type n, the median is n s; two of three tasks take between half and twice that.
_TASKS = """
    INSERT INTO tasks_app_task (
        id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback, message,
        attempt, failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at, started_at, finished_at,
        cancel_requested
    )
    SELECT gen_random_uuid(), 'bench.type_' || kind, 'default', '', 0, 'SUCCESS', 3, '[]', '{{}}', '', '', '', '',
        1, 0, 3, 600, false, ends - ran - waited, ends - ran - waited, ends - ran - waited, ends - ran, ends, false
    FROM (
        SELECT 1 + n % {types} AS kind,
            date_trunc('hour', now(), 'UTC') - (n + 0.5) * {hours} * interval '1 hour' / {count} AS ends,
            (1 + n % {types}) * exp(0.7 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())) * interval '1 s' AS ran,
            random() * interval '200 ms' AS waited
        FROM generate_series(0, {count} - 1) AS n
    ) AS ended
"""
_COPIES = """
    INSERT INTO tasks_app_rollup (
        task, started_at, span_seconds, queue, outcome, count, ran_bins, ran_counts, waited_bins, waited_counts
    )
    SELECT task, started_at - n * {hours} * interval '1 hour', span_seconds, queue, outcome, count, ran_bins, ran_counts,
        waited_bins, waited_counts
    FROM generate_series(1, {copies}) AS n CROSS JOIN tasks_app_rollup
"""


def fill(store: StoreConnection, count: int) -> int:
    """Have a month in which `count` tasks ended; gives how many of them are rows."""
    rows = max(TYPES, count * ROW_HOURS // HOURS)
    store.execute(_TASKS.format(types=TYPES, hours=ROW_HOURS, count=rows))
    store.execute("VACUUM (FREEZE, ANALYZE)")
    while store.run(roll_up(ROW_HOURS, LOOKS, GAMMA, SHORTEST_MS)) is not None:
        pass
    store.execute(_COPIES.format(copies=HOURS // ROW_HOURS - 1, hours=ROW_HOURS))
    while store.run(fold_day(FOLD_AFTER_DAYS, MOST_HOURS)) is not None:
        pass
    store.execute("VACUUM (FREEZE, ANALYZE)")
    store.execute("CHECKPOINT")
    return rows
