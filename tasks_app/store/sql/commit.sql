-- commit: each change whose attempt still holds its task becomes visible, with its history; the others, and locked rows, stay.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
change AS MATERIALIZED (
    SELECT * FROM unnest(
        %(ids)s::uuid[], %(attempts)s::int[], %(statuses)s::text[], %(bumps)s::int[], %(progress)s::float8[],
        %(messages)s::text[], %(results)s::text[], %(error_types)s::text[], %(error_messages)s::text[],
        %(tracebacks)s::text[], %(failed)s::int[], %(delays)s::float8[], %(error_classes)s::text[]
    ) AS c(
        id, attempt, status, bump, progress, message, result, error_type, error_message, traceback, failed, delay,
        error_class
    )
),
held AS MATERIALIZED (
    SELECT t.id, CASE WHEN c.status = 'PENDING' AND t.cancel_requested THEN 'CANCELLED' ELSE c.status END AS status
    FROM change c JOIN tasks_app_task t ON t.id = c.id
    WHERE t.status = 'RUNNING' AND t.attempt = c.attempt AND t.worker = %(worker)s
    ORDER BY t.id
    -- A row that somebody's long transaction has locked must not hold up everybody else's.
    FOR UPDATE OF t SKIP LOCKED
),
changed AS (
    UPDATE tasks_app_task t SET
        status = held.status,
        version = t.version + c.bump,
        progress = CASE WHEN held.status = 'PENDING' THEN NULL ELSE coalesce(c.progress, t.progress) END,
        message = coalesce(c.message, t.message),
        result = CASE WHEN held.status = 'SUCCESS' THEN c.result::jsonb END,
        error_type = c.error_type, error_message = c.error_message, traceback = c.traceback,
        error_class = c.error_class,
        failures = least(t.failures + c.failed, t.attempt),
        ready = held.status = 'PENDING' AND c.delay <= 0,
        run_at = CASE WHEN held.status = 'PENDING' AND c.delay > 0
            THEN now.at + make_interval(secs => c.delay) ELSE t.run_at END,
        order_key = CASE WHEN held.status = 'PENDING' AND c.delay > 0
            THEN now.at + make_interval(secs => c.delay - t.priority * %(head_start)s) ELSE t.order_key END,
        lease_expires_at = CASE WHEN held.status = 'RUNNING' THEN t.lease_expires_at END,
        finished_at = CASE WHEN held.status IN ('SUCCESS', 'FAILED', 'CANCELLED') THEN now.at END
    FROM change c, held, now
    WHERE t.id = c.id AND held.id = c.id
    RETURNING t.id, t.queue, t.status, t.version, t.attempt, t.ready, c.bump
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, progress, message, data)
    SELECT
        changed.id, changed.version - changed.bump + e.ordinal,
        CASE WHEN e.ordinal = changed.bump AND changed.status = 'CANCELLED' THEN 'cancelled' ELSE e.kind END,
        now.at, changed.attempt, e.progress, e.message, e.data::jsonb
    FROM now, changed JOIN unnest(
        %(event_ids)s::uuid[], %(event_ordinals)s::int[], %(event_kinds)s::text[], %(event_progress)s::float8[],
        %(event_messages)s::text[], %(event_data)s::text[]
    ) AS e(id, ordinal, kind, progress, message, data) ON e.id = changed.id
    -- A row of another history at this version, restored or written by hand, must not stop everybody's work.
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, progress = excluded.progress,
        message = excluded.message, data = excluded.data
),
-- A commit whose acknowledgement was lost is tried again: what it recorded then is there already.
recorded AS (
    INSERT INTO tasks_app_steprecord (task_id, name, attempt, result, at)
    SELECT changed.id, s.name, changed.attempt, s.result::jsonb, now.at
    FROM now, changed JOIN unnest(
        %(step_ids)s::uuid[], %(step_names)s::text[], %(step_results)s::text[]
    ) AS s(id, name, result) ON s.id = changed.id
    ON CONFLICT DO NOTHING
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', string_agg(hint, ',')) FROM (
        SELECT replace(id::text, '-', '') || ':' || version AS hint, row_number() OVER () / 150 AS chunk FROM changed
    ) AS hints GROUP BY chunk
),
offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'queue:' || queue) FROM (
        -- Where limits hold tasks back, one that no longer runs has made room for another.
        SELECT DISTINCT queue FROM changed WHERE ready OR (%(reoffer)s AND status <> 'RUNNING')
    ) AS q
)
SELECT id, status, version, (SELECT count(*) FROM told) + (SELECT count(*) FROM offered) FROM changed
