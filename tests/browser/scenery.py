"""An hour of somebody's tasks, for pictures of the admin: written by hand, as nobody waits for it."""

from __future__ import annotations

import psycopg

_HOUR = """
INSERT INTO tasks_app_task (
    id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback, message,
    attempt, failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at, started_at, finished_at,
    cancel_requested
)
SELECT
    (lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
        || substr(md5(n::text), 4, 15))::uuid,
    (ARRAY['report.render', 'mail.send', 'video.transcode'])[1 + n % 3],
    (ARRAY['reports', 'mail', 'video'])[1 + n % 3], '', 0,
    CASE WHEN n % 37 = 0 THEN 'FAILED' ELSE 'SUCCESS' END, 4, '[]', '{}',
    CASE WHEN n % 37 = 0 THEN 'ConnectionError' ELSE '' END,
    CASE WHEN n % 37 = 0 THEN 'no route to the mail host' ELSE '' END, '', '', 1, 0, 3, 600, false, at, at, at, at + w,
    at + w + r, false
FROM (
    SELECT n, now() - interval '3400 s' + n * interval '2 s' AS at,
        interval '1 s' * (0.05 + 0.4 * random() * random() * (1 + sin(n / 150.0))) AS w,
        interval '1 s' * (1 + n % 3) * (0.4 + 3 * random() * random() * random()) AS r
    FROM generate_series(1, 1640) n
) AS hour
"""
_LATER = """
INSERT INTO tasks_app_task (
    id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback, message,
    attempt, failures, max_attempts, timeout_seconds, ready, order_key, run_at, created_at, cancel_requested
)
SELECT ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'report.render', 'reports', '', 0, 'PENDING', 1,
    '[]', '{}', '', '', '', '', 0, 0, 3, 600, false, at, at, now(), false
FROM (SELECT n, now() + interval '1 h' AS at FROM generate_series(1, 42) n) AS tomorrow
"""


def paint(database_url: str) -> None:
    """Write it."""
    with psycopg.connect(database_url) as connection:
        connection.execute(_HOUR)
        connection.execute(_LATER)
