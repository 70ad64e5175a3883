-- requeue: a RUNNING task goes back to its queue as if its attempt had never been; what that attempt says from now on is dropped.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
target AS MATERIALIZED (
    SELECT id FROM tasks_app_task
    WHERE id = %(id)s AND status = 'RUNNING' AND NOT cancel_requested AND version < 2147483647
    FOR UPDATE
),
released AS (
    UPDATE tasks_app_task t SET
        status = 'PENDING', version = t.version + 1, ready = true, progress = NULL, lease_expires_at = NULL
    FROM target WHERE t.id = target.id
    RETURNING t.id, t.queue, t.version, t.attempt
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, message)
    SELECT id, version, 'released', at, attempt, '' FROM released, now
    -- A row of another history at this version, restored or written by hand, must not stop everybody's work.
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, progress = excluded.progress,
        message = excluded.message, data = excluded.data
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', replace(id::text, '-', '') || ':' || version),
        pg_notify('asyncpoll_work', 'queue:' || queue)
    FROM released
),
-- Where limits hold tasks back, one that no longer runs has made room for another.
offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'room:') WHERE %(limited)s AND EXISTS (SELECT FROM released)
)
SELECT id, 'PENDING', version, (SELECT count(*) FROM told) + (SELECT count(*) FROM offered) FROM released
