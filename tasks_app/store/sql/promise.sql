-- promise: a locked task's end goes to this target, now where it is over; once, and to so many targets at most.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
fresh AS (
    INSERT INTO tasks_app_delivery (
        id, task_id, owner, target, target_key, host, state, attempts, created_at, owed_at, due_at, last_error
    )
    SELECT %(id)s, t.id, t.owner, %(target)s, %(key)s, %(host)s,
        CASE WHEN t.finished_at IS NULL THEN 'WAITING' ELSE 'DUE' END, 0, now.at,
        CASE WHEN t.finished_at IS NOT NULL THEN now.at END, CASE WHEN t.finished_at IS NOT NULL THEN now.at END, ''
    FROM tasks_app_task t, now
    WHERE t.id = %(task)s AND (SELECT count(*) FROM tasks_app_delivery WHERE task_id = %(task)s) < %(most)s
    ON CONFLICT (task_id, target_key) DO NOTHING
    RETURNING id, state
),
awaited AS (
    UPDATE tasks_app_task SET awaited = true
    WHERE id = %(task)s AND NOT awaited AND finished_at IS NULL AND EXISTS (SELECT FROM fresh)
),
told AS MATERIALIZED (SELECT pg_notify('asyncpoll_work', 'deliver:') FROM fresh WHERE state = 'DUE')
SELECT id, state, (SELECT count(*) FROM told) FROM fresh
UNION ALL
SELECT id, state, 0 FROM tasks_app_delivery WHERE task_id = %(task)s AND target_key = %(key)s
