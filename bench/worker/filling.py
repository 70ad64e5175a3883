"""Fills the tables with tasks that have ended, faster than any worker could."""

from __future__ import annotations

import time
from uuid import UUID

from uuid_utils.compat import uuid7

from bench.store import StoreConnection, new_task, success, take
from tasks_app.store import commit, enqueue

_QUEUE = "bench"
MONTH_SECONDS = 30 * 86_400
_TIMES = {"created_at", "run_at", "order_key", "started_at", "finished_at", "at"}
_IDS = {"tasks_app_task": "id", "tasks_app_taskevent": "task_id"}
_COLUMNS = """
    SELECT attname FROM pg_attribute
    WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
    ORDER BY attnum
"""
_COPY = """
    INSERT INTO {table} ({columns})
    SELECT {values} FROM generate_series(1, {count}) AS n CROSS JOIN {table} AS t WHERE t.{id} = '{model}'
"""


def fill(store: StoreConnection, count: int) -> None:
    """Have `count` finished tasks with their history: one that went the usual way, and copies over the past month."""
    model = _finished(store)
    step = MONTH_SECONDS / count
    # Like uuid7: time first, so that an index grows at its end. The rest only has to differ.
    copy_id = (
        f"(lpad(to_hex(({time.time()} * 1000 - ({count} - n) * {step * 1000})::bigint), 12, '0')"
        " || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid"
    )
    for table, id_ in _IDS.items():
        columns = [row[0] for row in store.execute(_COLUMNS.format(table=table))]
        values = {id_: copy_id}
        values |= {
            name: f"t.{name} - make_interval(secs => ({count} - n) * {step})" for name in _TIMES
        }
        store.execute(
            _COPY.format(
                table=table,
                columns=", ".join(columns),
                values=", ".join(values.get(name, f"t.{name}") for name in columns),
                count=count - 1,
                id=id_,
                model=model,
            )
        )
    store.execute("VACUUM (FREEZE, ANALYZE)")
    store.execute("CHECKPOINT")


def _finished(store: StoreConnection) -> UUID:
    """A task that was enqueued, claimed and committed."""
    worker = uuid7()
    store.run(enqueue([new_task(_QUEUE)]))
    (claimed,) = store.run(take(worker, 1, _QUEUE))
    store.run(commit(worker, [success(claimed.id)]))
    return claimed.id
