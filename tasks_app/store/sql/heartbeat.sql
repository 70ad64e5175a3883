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
    SELECT t.id, t.attempt, t.cancel_requested FROM unnest(%(ids)s::uuid[], %(attempts)s::int[]) AS h(id, attempt)
    JOIN tasks_app_task t ON t.id = h.id
    WHERE t.status = 'RUNNING' AND t.attempt = h.attempt AND t.worker = %(worker)s
),
-- A row that somebody's long transaction has locked keeps its lease as it is, and does not cost the others theirs.
free AS MATERIALIZED (
    SELECT t.id FROM held JOIN tasks_app_task t ON t.id = held.id
    WHERE t.status = 'RUNNING' AND t.attempt = held.attempt AND t.worker = %(worker)s
    FOR UPDATE OF t SKIP LOCKED
),
extended AS (
    UPDATE tasks_app_task t SET lease_expires_at = least(
        now.at + make_interval(secs => %(lease)s), t.started_at + make_interval(secs => t.timeout_seconds)
    )
    FROM free, now
    WHERE t.id = free.id
)
SELECT id, attempt, cancel_requested FROM held
