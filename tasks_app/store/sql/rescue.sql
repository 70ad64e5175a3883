-- rescue: tasks whose lease ran out are given to another attempt, or end when none is left; at most `limit` at once.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
upkeep AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('rescue')) AS is_mine
),
expired AS MATERIALIZED (
    SELECT t.id, CASE
        WHEN t.cancel_requested THEN 'CANCELLED'
        WHEN t.failures + 1 >= t.max_attempts THEN 'FAILED'
        ELSE 'PENDING'
    END AS status,
    least(coalesce(own.cap, %(retry_max)s), coalesce(own.base, %(retry_base)s) * power(2, least(t.failures, 30)))
        * random() AS delay
    FROM tasks_app_task t LEFT JOIN json_to_recordset(%(backoffs)s::json) AS own(name text, base float8, cap float8)
        ON own.name = t.name
    -- An attempt that ends at its deadline, where its lease ends too, has a second to say so itself.
    WHERE (SELECT is_mine FROM upkeep)
        AND t.status = 'RUNNING' AND t.lease_expires_at < (SELECT at FROM now) - interval '1 second'
    ORDER BY t.lease_expires_at
    LIMIT %(limit)s
    FOR UPDATE OF t SKIP LOCKED
),
rescued AS (
    UPDATE tasks_app_task t SET
        status = expired.status, version = t.version + 1, failures = least(t.failures + 1, t.attempt), progress = NULL,
        error_type = CASE WHEN t.started_at + make_interval(secs => t.timeout_seconds) <= now.at
            THEN 'TimeoutError' ELSE 'LeaseExpired' END,
        error_message = CASE WHEN t.started_at + make_interval(secs => t.timeout_seconds) <= now.at
            THEN format('Attempt %%s exceeded its time limit of %%s s.', t.attempt, t.timeout_seconds)
            ELSE format('The worker that ran attempt %%s stopped answering.', t.attempt) END,
        error_class = CASE WHEN t.started_at + make_interval(secs => t.timeout_seconds) <= now.at
            THEN 'builtins.TimeoutError' ELSE 'tasks_app.errors.LeaseExpired' END,
        traceback = '',
        lease_expires_at = NULL,
        run_at = CASE WHEN expired.status = 'PENDING'
            THEN now.at + make_interval(secs => expired.delay) ELSE t.run_at END,
        order_key = CASE WHEN expired.status = 'PENDING'
            THEN now.at + make_interval(secs => expired.delay - t.priority * %(head_start)s) ELSE t.order_key END,
        finished_at = CASE WHEN expired.status <> 'PENDING' THEN now.at END
    FROM expired, now
    WHERE t.id = expired.id
    RETURNING t.id, t.version, t.status, t.attempt, t.error_message, now.at, t.name, t.queue,
        coalesce(extract(epoch FROM now.at - t.started_at)::float8, 0) AS ran,
        coalesce(greatest(0, extract(epoch FROM t.started_at - greatest(t.run_at, t.created_at))::float8), 0) AS waited
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, message)
    SELECT id, version, CASE status WHEN 'PENDING' THEN 'rescued' ELSE lower(status) END, at, attempt, error_message
    FROM rescued
    -- A row of another history at this version, restored or written by hand, must not stop everybody's work.
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, progress = excluded.progress,
        message = excluded.message, data = excluded.data
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', string_agg(hint, ',')) FROM (
        SELECT replace(id::text, '-', '') || ':' || version AS hint, row_number() OVER () / 150 AS chunk FROM rescued
    ) AS hints GROUP BY chunk
),
-- Where limits hold tasks back, one that no longer runs has made room for another.
offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'room:') WHERE %(limited)s AND EXISTS (SELECT FROM rescued)
)
SELECT id, status, version, name, queue, attempt, ran, waited, (SELECT count(*) FROM told) + (SELECT count(*) FROM offered)
FROM rescued
