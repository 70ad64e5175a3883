-- promote: tasks that have become due enter the ready index and their queues' workers are told; at most `limit` at once.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
upkeep AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('promote')) AS is_mine
),
due AS MATERIALIZED (
    SELECT id FROM tasks_app_task
    WHERE (SELECT is_mine FROM upkeep) AND status = 'PENDING' AND NOT ready AND run_at <= (SELECT at FROM now)
    ORDER BY run_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
),
promoted AS (
    UPDATE tasks_app_task t SET ready = true FROM due WHERE t.id = due.id RETURNING t.queue
),
offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'queue:' || queue) FROM (SELECT DISTINCT queue FROM promoted) AS q
)
SELECT
    (SELECT count(*) FROM promoted),
    extract(epoch FROM (
        SELECT min(run_at) FROM tasks_app_task
        WHERE status = 'PENDING' AND NOT ready AND run_at > (SELECT at FROM now)
    ) - clock_timestamp())::float8,
    (SELECT count(*) FROM offered)
