-- step: code that runs a task outside the workers reports where it is; a task that a worker holds, or that is over, is left.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
target AS MATERIALIZED (
    SELECT id, status = 'PENDING' AS starts FROM tasks_app_task
    WHERE id = %(id)s AND (status = 'PENDING' OR (status = 'RUNNING' AND worker = %(worker)s))
    FOR UPDATE
),
changed AS (
    UPDATE tasks_app_task t SET
        status = %(status)s::text,
        version = t.version + 1,
        attempt = t.attempt + target.starts::int,
        failures = least(t.failures + (%(status)s::text = 'FAILED')::int, t.attempt + target.starts::int),
        ready = false,
        worker = %(worker)s,
        started_at = CASE WHEN target.starts THEN now.at ELSE t.started_at END,
        progress = coalesce(%(progress)s::float8, t.progress),
        message = coalesce(%(message)s::text, t.message),
        result = CASE WHEN %(status)s::text = 'SUCCESS' THEN %(result)s::jsonb END,
        error_type = %(error_type)s::text, error_message = %(error_message)s::text, error_class = '', traceback = '',
        lease_expires_at = CASE WHEN %(status)s::text = 'RUNNING' THEN
            CASE WHEN target.starts THEN now.at ELSE t.started_at END + make_interval(secs => t.timeout_seconds) END,
        finished_at = CASE WHEN %(status)s::text <> 'RUNNING' THEN now.at END
    FROM target, now
    WHERE t.id = target.id
    RETURNING t.id, t.status, t.version, t.attempt, t.progress, t.message, now.at
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, progress, message, data)
    SELECT id, version, %(kind)s::text, at, attempt, progress, message, %(data)s::jsonb FROM changed
    -- A row of another history at this version, restored or written by hand, must not stop everybody's work.
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, progress = excluded.progress,
        message = excluded.message, data = excluded.data
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', replace(id::text, '-', '') || ':' || version) FROM changed
),
-- Where limits hold tasks back, one that no longer runs has made room for another.
offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'room:') WHERE %(limited)s AND EXISTS (SELECT FROM changed WHERE status <> 'RUNNING')
)
SELECT version, (SELECT count(*) FROM told) + (SELECT count(*) FROM offered) FROM changed
