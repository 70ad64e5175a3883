-- quarantine: tasks whose counters can't grow any more, as somebody edited them, end as FAILED and are given.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
suspect AS (
    SELECT id, version, attempt FROM tasks_app_task WHERE ready
    UNION ALL
    SELECT id, version, attempt FROM tasks_app_task WHERE status = 'PENDING' AND NOT ready
    UNION ALL
    SELECT id, version, attempt FROM tasks_app_task WHERE status = 'RUNNING'
),
unfit AS MATERIALIZED (
    SELECT t.id FROM tasks_app_task t
    WHERE t.id IN (SELECT id FROM suspect WHERE version > %(most)s OR attempt > %(most)s)
        AND t.status IN ('PENDING', 'RUNNING')
    FOR UPDATE SKIP LOCKED
),
ended AS (
    UPDATE tasks_app_task t SET
        status = 'FAILED', version = least(t.version::bigint + 1, 2147483647), ready = false, progress = NULL,
        error_type = 'CounterExhausted', error_class = 'tasks_app.errors.CounterExhausted', traceback = '',
        error_message = format(
            'Version %%s and attempt %%s can''t grow any more: somebody edited the row. Run the task again.',
            t.version, t.attempt
        ),
        lease_expires_at = NULL, finished_at = now.at
    FROM unfit, now
    WHERE t.id = unfit.id
    RETURNING t.id, t.version, t.attempt, t.error_message, now.at
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, message)
    SELECT id, version, 'failed', at, attempt, error_message FROM ended
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, progress = excluded.progress,
        message = excluded.message, data = excluded.data
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', replace(id::text, '-', '') || ':' || version) FROM ended
),
-- Where limits hold tasks back, one that no longer runs has made room for another.
offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'room:') WHERE %(limited)s AND EXISTS (SELECT FROM ended)
)
SELECT id, error_message, (SELECT count(*) FROM told) + (SELECT count(*) FROM offered) FROM ended
