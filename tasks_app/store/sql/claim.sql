-- claim: of each lane at most its quota of ready tasks become RUNNING under this worker's lease; no other claim gets the same.
WITH picked AS MATERIALIZED (
    SELECT due.id
    FROM json_to_recordset(%(shares)s::json) AS lane(queue text, owner text, quota int)
    CROSS JOIN LATERAL (
        SELECT t.id FROM tasks_app_task t
        WHERE t.ready AND t.queue = lane.queue AND t.owner = lane.owner
        ORDER BY t.order_key, t.id
        LIMIT lane.quota
        FOR UPDATE SKIP LOCKED
    ) AS due
),
now AS MATERIALIZED (SELECT clock_timestamp() AS at),
claimed AS (
    UPDATE tasks_app_task t SET
        status = 'RUNNING', version = t.version + 1, attempt = t.attempt + 1, ready = false,
        worker = %(worker)s, started_at = now.at, progress = NULL, message = '',
        lease_expires_at = now.at + make_interval(secs => least(%(lease)s, t.timeout_seconds))
    FROM now
    WHERE t.id = ANY(ARRAY(SELECT id FROM picked))
    RETURNING t.id, t.name, t.queue, t.owner, t.args, t.kwargs, t.attempt, t.failures, t.max_attempts, t.timeout_seconds,
        t.version, t.cancel_requested, t.trace_context, t.backend, t.worker, t.order_key, t.run_at, t.created_at, t.started_at
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, worker, message)
    SELECT id, version, 'started', started_at, attempt, worker, '' FROM claimed
    -- A row of another history at this version, restored or written by hand, must not stop everybody's work.
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, worker = excluded.worker,
        progress = excluded.progress, message = excluded.message, data = excluded.data
),
notified AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', string_agg(hint, ',')) FROM (
        SELECT replace(id::text, '-', '') || ':' || version AS hint, row_number() OVER () / 150 AS chunk FROM claimed
    ) AS hints GROUP BY chunk
)
SELECT
    id, name, queue, owner, args::text, kwargs::text, attempt, failures, max_attempts, timeout_seconds, version,
    cancel_requested, trace_context::text,
    extract(epoch FROM started_at - greatest(run_at, created_at))::float8 AS queue_wait_seconds,
    backend,
    (SELECT count(*) FROM notified)
FROM claimed ORDER BY order_key, id
