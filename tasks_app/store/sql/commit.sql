-- commit: each change whose attempt still holds its task becomes visible, with its history; the others, and locked rows, stay.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
-- In order of ids, in which everybody locks.
change AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(changes)s::json) AS c(
        id uuid, attempt int, status text, kind text, bump int, progress float8, message text, data text, result text,
        error_type text, error_message text, error_class text, traceback text, failed int, wait float8
    ) ORDER BY id
),
held AS MATERIALIZED (
    SELECT c.*, CASE WHEN c.status = 'PENDING' AND t.cancel_requested THEN 'CANCELLED' ELSE c.status END AS ends,
        coalesce(c.wait, 0) AS delay
    FROM change c CROSS JOIN LATERAL (
        -- By its key, one by one: the index of running tasks, which looks as cheap, is full of those that no longer are.
        SELECT status, attempt, worker, cancel_requested FROM tasks_app_task WHERE id = c.id LIMIT 1
        -- A row that somebody's long transaction has locked must not hold up everybody else's.
        FOR UPDATE SKIP LOCKED
    ) AS t
    WHERE t.status = 'RUNNING' AND t.attempt = c.attempt AND t.worker = %(worker)s
),
changed AS (
    UPDATE tasks_app_task t SET
        status = c.ends,
        version = t.version + c.bump,
        progress = CASE WHEN c.ends = 'PENDING' THEN NULL ELSE coalesce(c.progress, t.progress) END,
        message = coalesce(c.message, t.message),
        result = CASE WHEN c.ends = 'SUCCESS' THEN c.result::jsonb END,
        error_type = coalesce(c.error_type, ''), error_message = coalesce(c.error_message, ''),
        error_class = coalesce(c.error_class, ''), traceback = coalesce(c.traceback, ''),
        failures = least(t.failures + coalesce(c.failed, 0), t.attempt),
        ready = c.ends = 'PENDING' AND c.delay <= 0,
        run_at = CASE WHEN c.ends = 'PENDING' AND c.delay > 0
            THEN now.at + make_interval(secs => c.delay) ELSE t.run_at END,
        order_key = CASE WHEN c.ends = 'PENDING' AND c.delay > 0
            THEN now.at + make_interval(secs => c.delay - t.priority * %(head_start)s) ELSE t.order_key END,
        lease_expires_at = CASE WHEN c.ends = 'RUNNING' THEN t.lease_expires_at END,
        finished_at = CASE WHEN c.ends IN ('SUCCESS', 'FAILED', 'CANCELLED') THEN now.at END
    FROM held c, now
    WHERE t.id = c.id
    RETURNING t.id, t.queue, t.owner, t.status, t.version, t.attempt, t.ready, now.at,
        c.bump, c.kind, c.progress, c.message, c.data
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, progress, message, data)
    SELECT id, version, CASE status WHEN 'CANCELLED' THEN 'cancelled' ELSE kind END, at, attempt, progress,
        coalesce(message, ''), data::jsonb
    FROM changed
    --{ earlier
    UNION ALL
    -- Of a change with several milestones, all but the last.
    SELECT id, version - bump + e.ordinal, e.kind, at, attempt, e.progress, coalesce(e.message, ''), e.data::jsonb
    FROM changed JOIN json_to_recordset(%(earlier)s::json) AS e(
        id uuid, ordinal int, kind text, progress float8, message text, data text
    ) USING (id)
    --}
    -- A row of another history at this version, restored or written by hand, must not stop everybody's work.
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, progress = excluded.progress,
        message = excluded.message, data = excluded.data
),
--{ steps
-- A commit whose acknowledgement was lost is tried again: what it recorded then is there already.
recorded AS (
    INSERT INTO tasks_app_steprecord (task_id, name, attempt, result, at)
    SELECT id, s.name, attempt, s.result::jsonb, at
    FROM changed JOIN json_to_recordset(%(steps)s::json) AS s(id uuid, name text, result text) USING (id)
    ON CONFLICT DO NOTHING
),
--}
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', string_agg(hint, ',')) FROM (
        SELECT replace(id::text, '-', '') || ':' || version AS hint, row_number() OVER () / 150 AS chunk FROM changed
    ) AS hints GROUP BY chunk
)
--{ room
, offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'queue:' || queue) FROM (
        -- Where limits hold tasks back, one that no longer runs has made room for another.
        SELECT DISTINCT queue FROM changed WHERE ready OR (%(reoffer)s AND status <> 'RUNNING')
    ) AS q
    UNION ALL
    -- An owner's limit spans queues.
    SELECT pg_notify('asyncpoll_work', 'room:')
    WHERE %(anywhere)s AND EXISTS (SELECT FROM changed WHERE owner <> '' AND status <> 'RUNNING')
)
--}
SELECT id, status, version, (SELECT count(*) FROM told)
    --{ room
    + (SELECT count(*) FROM offered)
    --}
FROM changed
