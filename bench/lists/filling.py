"""A month of tasks in every state, written by the database itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bench.store import StoreConnection

RARE_TYPE: Final = "bench.rare"
OWNER: Final = "owner-7"
_BATCH = 500_000
# Ids are UUIDv7 of the moments; of 1,000 tasks one has failed, one waits for next month, and few run.
_TASKS = """
    INSERT INTO tasks_app_task (
        id, name, queue, owner, priority, status, version, args, kwargs, result, error_type, error_message, traceback, message,
        attempt, failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at, started_at, finished_at,
        worker, lease_expires_at, cancel_requested
    )
    SELECT
        (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
            || substr(md5(n::text), 4, 15))::uuid,
        CASE WHEN n % 500000 = 3 THEN '{rare}' ELSE 'bench.type_' || n % 20 END, 'queue-' || n % 3,
        CASE WHEN n % 4 > 0 THEN 'owner-' || n % 5000 ELSE '' END, 0, status, 3, jsonb_build_array(n), '{{}}',
        CASE WHEN status = 'SUCCESS' THEN '{{"files": 530, "warnings": ["font missing"]}}'::jsonb END,
        CASE WHEN status = 'FAILED' THEN 'OSError' ELSE '' END,
        CASE WHEN status = 'FAILED' THEN 'no route to host' ELSE '' END, '', 'half of it', 1, 0, 3, 600, false, at,
        CASE WHEN status = 'PENDING' THEN at + interval '40 d' ELSE at END, at,
        CASE WHEN status <> 'PENDING' THEN at + interval '1 s' END,
        CASE WHEN status IN ('SUCCESS', 'FAILED') THEN at + interval '3 s' END,
        CASE WHEN status <> 'PENDING' THEN '00000000-0000-7000-8000-000000000001'::uuid END,
        CASE WHEN status = 'RUNNING' THEN now() + interval '1 h' END, false
    FROM (
        SELECT n, now() - interval '29 d' + n * interval '29 d' / {count} AS at,
            CASE WHEN n % 1000 = 1 THEN 'FAILED' WHEN n % 1000 = 3 THEN 'PENDING' WHEN n % 5000 = 2 THEN 'RUNNING'
                ELSE 'SUCCESS' END AS status
        FROM generate_series({first}, {last}) AS n
    ) AS month
"""
_LARGE = """
    UPDATE tasks_app_task SET result = jsonb_build_object('text', repeat('0123456789abcdef', 655360))
    WHERE id = (SELECT id FROM tasks_app_task WHERE status = 'SUCCESS' ORDER BY id DESC LIMIT 1) RETURNING id::text
"""
_MIDDLE = "SELECT id::text FROM tasks_app_task ORDER BY id OFFSET {before} LIMIT 1"


@dataclass(frozen=True, slots=True)
class Landmarks:
    """Ids of tasks that addresses name: the one with a `large` result, and the one in the `middle` of the month."""

    large: str
    middle: str


def fill(store: StoreConnection, count: int) -> Landmarks:
    """Have `count` tasks."""
    for first in range(1, count + 1, _BATCH):
        last = min(count, first + _BATCH - 1)
        store.execute(_TASKS.format(rare=RARE_TYPE, count=count, first=first, last=last))
    [(large,)] = store.execute(_LARGE)
    [(middle,)] = store.execute(_MIDDLE.format(before=count // 2))
    store.execute("VACUUM (FREEZE, ANALYZE)")
    store.execute("CHECKPOINT")
    return Landmarks(large, middle)
