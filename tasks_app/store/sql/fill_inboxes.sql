-- fill_inboxes: ends that are due are in their owners' inboxes, each once, at most `limit`; whoever waits for one is told.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
due AS MATERIALIZED (
    SELECT id, task_id, owner FROM tasks_app_delivery
    WHERE state = 'DUE' AND host = '' AND due_at <= (SELECT at FROM now)
    ORDER BY due_at, id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
),
-- A task that was deleted, or has changed hands, is no longer the owner's to be told of.
ended AS MATERIALIZED (
    SELECT due.id, t.id AS task_id, t.owner, t.name, t.queue, t.status, t.version, t.error_type, t.error_message, t.finished_at
    FROM due JOIN tasks_app_task t ON t.id = due.task_id AND t.owner = due.owner AND t.finished_at IS NOT NULL
),
entries AS (
    INSERT INTO tasks_app_inboxentry (
        id, task_id, owner, name, queue, status, version, error_type, error_message, finished_at, created_at
    )
    SELECT ended.*, now.at FROM ended, now
    ON CONFLICT (id) DO NOTHING
    RETURNING owner
),
closed AS (
    UPDATE tasks_app_delivery d SET
        state = CASE WHEN ended.id IS NULL THEN 'FAILED' ELSE 'DELIVERED' END,
        last_error = CASE WHEN ended.id IS NULL THEN 'TaskGone' ELSE '' END,
        attempts = 1, due_at = NULL, finished_at = now.at
    FROM now, due LEFT JOIN ended ON ended.id = due.id
    WHERE d.id = due.id
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', string_agg(hint, ',')) FROM (
        SELECT 'inbox:' || left(md5(owner), 24) AS hint, row_number() OVER () / 150 AS chunk
        FROM (SELECT DISTINCT owner FROM entries) AS owners
    ) AS hints GROUP BY chunk
)
SELECT (SELECT count(*) FROM due), (SELECT count(*) FROM entries), (SELECT count(*) FROM told)
