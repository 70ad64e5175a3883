-- begin: an attempt has begun at a task that another system runs, whatever became of its attempt before.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
target AS MATERIALIZED (
    SELECT id FROM tasks_app_task
    WHERE id = %(id)s AND (status = 'PENDING' OR (status = 'RUNNING' AND worker = %(worker)s))
    FOR UPDATE
),
begun AS (
    UPDATE tasks_app_task t SET
        status = 'RUNNING', version = t.version + 1, attempt = t.attempt + 1, ready = false,
        worker = %(worker)s, started_at = now.at, progress = NULL, message = '',
        lease_expires_at = now.at + make_interval(secs => t.timeout_seconds)
    FROM target, now
    WHERE t.id = target.id
    RETURNING t.id, t.version, t.attempt, t.worker, now.at
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, worker, message)
    SELECT id, version, 'started', at, attempt, worker, '' FROM begun
    -- A row of another history at this version, restored or written by hand, must not stop everybody's work.
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, progress = excluded.progress,
        message = excluded.message, data = excluded.data
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', replace(id::text, '-', '') || ':' || version) FROM begun
)
SELECT attempt, (SELECT count(*) FROM told) FROM begun
