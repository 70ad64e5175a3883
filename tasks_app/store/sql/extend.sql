-- extend: those of `ids` that this claim still holds get a fresh lease, never past their attempt's deadline, and are given.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
held AS MATERIALIZED (
    SELECT t.id FROM tasks_app_task t, now
    -- A row that somebody has locked is not waited for for long.
    WHERE set_config('lock_timeout', %(patience)s::text, true) IS NOT NULL
        AND t.id = ANY(%(ids)s::uuid[]) AND t.status = 'RUNNING' AND t.worker = %(claim)s
        AND (%(attempt)s::int IS NULL OR t.attempt = %(attempt)s::int)
        AND t.started_at + make_interval(secs => t.timeout_seconds) > now.at
    ORDER BY t.id
    FOR UPDATE OF t
),
extended AS (
    UPDATE tasks_app_task t SET lease_expires_at = least(
        now.at + make_interval(secs => %(lease)s), t.started_at + make_interval(secs => t.timeout_seconds)
    )
    FROM held, now
    WHERE t.id = held.id
    RETURNING t.*, now.at
)
SELECT
    id, name, queue, owner, CASE WHEN %(whole)s THEN args::text ELSE '[]' END,
    CASE WHEN %(whole)s THEN kwargs::text ELSE '{}' END,
    attempt, failures, max_attempts, timeout_seconds, version, cancel_requested, trace_context::text,
    extract(epoch FROM started_at - greatest(run_at, created_at))::float8, extract(epoch FROM at - started_at)::float8,
    lease_expires_at, started_at + make_interval(secs => timeout_seconds)
FROM extended ORDER BY order_key, id
