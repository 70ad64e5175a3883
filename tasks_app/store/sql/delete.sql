-- delete: the tasks, their history and their step records are gone, and whoever waits for one is told.
WITH gone AS (
    DELETE FROM tasks_app_task WHERE id = ANY(%(ids)s::uuid[]) RETURNING id
),
history AS (
    DELETE FROM tasks_app_taskevent WHERE task_id = ANY(%(ids)s::uuid[])
),
steps AS (
    DELETE FROM tasks_app_steprecord WHERE task_id = ANY(%(ids)s::uuid[])
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', string_agg(hint, ',')) FROM (
        SELECT replace(id::text, '-', '') || ':0' AS hint, row_number() OVER () / 150 AS chunk FROM gone
    ) AS hints GROUP BY chunk
)
SELECT id, (SELECT count(*) FROM told) FROM gone
