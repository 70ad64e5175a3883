-- revisit_deliveries: claim checks whose task is over all the same, or gone, are due; it looks at `limit` after a cursor.
WITH upkeep AS MATERIALIZED (
    SELECT NOT %(alone)s OR pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('revisit_deliveries')) AS is_mine
),
now AS MATERIALIZED (SELECT clock_timestamp() AS at),
waiting AS MATERIALIZED (
    SELECT id, task_id FROM tasks_app_delivery
    WHERE (SELECT is_mine FROM upkeep) AND state = 'WAITING' AND id > %(after)s
    ORDER BY id
    LIMIT %(limit)s
),
missed AS MATERIALIZED (
    SELECT w.id FROM waiting w LEFT JOIN tasks_app_task t ON t.id = w.task_id
    WHERE t.id IS NULL OR t.finished_at IS NOT NULL
),
owed AS (
    UPDATE tasks_app_delivery d SET state = 'DUE', owed_at = now.at, due_at = now.at FROM missed, now
    WHERE d.id = missed.id AND d.state = 'WAITING'
    RETURNING d.id
),
told AS MATERIALIZED (SELECT pg_notify('asyncpoll_work', 'deliver:') FROM owed LIMIT 1)
SELECT (SELECT count(*) FROM owed), (SELECT id FROM waiting ORDER BY id DESC LIMIT 1), (SELECT count(*) FROM told)
