-- heartbeat: the leases this worker still holds are extended, never past an attempt's deadline; the worker is seen alive.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
alive AS (
    INSERT INTO tasks_app_workerprocess (
        id, hostname, pid, queues, concurrency, running, started_at, heartbeat_at
    )
    SELECT %(worker)s, %(hostname)s, %(pid)s, %(queues)s::jsonb, %(concurrency)s, cardinality(%(ids)s::uuid[]), at, at
    FROM now
    ON CONFLICT (id) DO UPDATE SET running = excluded.running, heartbeat_at = excluded.heartbeat_at
),
held AS MATERIALIZED (
    SELECT t.id FROM unnest(%(ids)s::uuid[], %(attempts)s::int[]) AS h(id, attempt)
    JOIN tasks_app_task t ON t.id = h.id
    WHERE t.status = 'RUNNING' AND t.attempt = h.attempt AND t.worker = %(worker)s
    ORDER BY t.id
    FOR UPDATE OF t
)
UPDATE tasks_app_task t SET lease_expires_at = least(
    now.at + make_interval(secs => %(lease)s), t.started_at + make_interval(secs => t.timeout_seconds)
)
FROM held, now
WHERE t.id = held.id
RETURNING t.id, t.attempt, t.cancel_requested
