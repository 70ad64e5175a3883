-- give_back: tasks that are this worker's but not among those it knows, as no answer to its claim came, may be claimed again.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
unknown AS MATERIALIZED (
    SELECT t.id, CASE WHEN t.cancel_requested THEN 'CANCELLED' ELSE 'PENDING' END AS status
    FROM tasks_app_task t
    WHERE t.status = 'RUNNING' AND t.worker = %(worker)s AND NOT EXISTS (
        SELECT FROM unnest(%(ids)s::uuid[], %(attempts)s::int[]) AS k(id, attempt)
        WHERE k.id = t.id AND k.attempt = t.attempt
    )
    -- What somebody has locked is left to the rescue.
    FOR UPDATE OF t SKIP LOCKED
),
given AS (
    UPDATE tasks_app_task t SET
        status = unknown.status, version = t.version + 1, ready = unknown.status = 'PENDING', progress = NULL,
        lease_expires_at = NULL, finished_at = CASE WHEN unknown.status = 'CANCELLED' THEN now.at END
    FROM unknown, now
    WHERE t.id = unknown.id
    RETURNING t.id, t.queue, t.version, t.status, t.attempt, t.ready, now.at
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, message)
    SELECT id, version, CASE WHEN ready THEN 'released' ELSE 'cancelled' END, at, attempt, '' FROM given
    -- A row of another history at this version, restored or written by hand, must not stop everybody's work.
    ON CONFLICT (task_id, version) DO UPDATE SET
        kind = excluded.kind, at = excluded.at, attempt = excluded.attempt, progress = excluded.progress,
        message = excluded.message, data = excluded.data
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', string_agg(hint, ',')) FROM (
        SELECT replace(id::text, '-', '') || ':' || version AS hint, row_number() OVER () / 150 AS chunk FROM given
    ) AS hints GROUP BY chunk
),
offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'queue:' || queue) FROM (SELECT DISTINCT queue FROM given WHERE ready) AS q
    UNION ALL
    -- Where limits hold tasks back, one that no longer runs has made room for another.
    SELECT pg_notify('asyncpoll_work', 'room:') WHERE %(limited)s AND EXISTS (SELECT FROM given)
)
SELECT id, status, version, (SELECT count(*) FROM told) + (SELECT count(*) FROM offered) FROM given
