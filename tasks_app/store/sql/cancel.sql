-- cancel: a PENDING task ends at once, a RUNNING one is asked to stop; asking twice, or after the end, changes nothing.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
target AS MATERIALIZED (
    SELECT id FROM tasks_app_task
    -- A row that somebody has locked is not waited for beyond the caller's patience.
    WHERE id = %(id)s
        AND set_config('lock_timeout', coalesce(%(patience)s::text, current_setting('lock_timeout')), true) IS NOT NULL
        AND version < 2147483647 AND (status = 'PENDING' OR (status = 'RUNNING' AND NOT cancel_requested))
    FOR UPDATE
),
cancelled AS (
    UPDATE tasks_app_task t SET
        cancel_requested = true, version = t.version + 1, ready = false,
        status = CASE t.status WHEN 'PENDING' THEN 'CANCELLED' ELSE t.status END,
        finished_at = CASE t.status WHEN 'PENDING' THEN now.at END
    FROM target, now
    WHERE t.id = target.id
    RETURNING t.id, t.version, t.status, t.attempt, t.progress, now.at
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, progress, message)
    SELECT id, version, CASE status WHEN 'CANCELLED' THEN 'cancelled' ELSE 'cancel_requested' END, at, attempt,
        progress, ''
    FROM cancelled
    -- A row of another history at this version, restored or written by hand, must not stop everybody's work.
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, progress = excluded.progress,
        message = excluded.message, data = excluded.data
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', replace(id::text, '-', '') || ':' || version),
        CASE status WHEN 'RUNNING' THEN pg_notify('asyncpoll_work', 'cancel:' || id) END
    FROM cancelled
)
SELECT id, status, version, (SELECT count(*) FROM told) FROM cancelled
