-- delete: the tasks are gone with their history, step records and deliveries, and whoever waits for one is told.
WITH gone AS (
    DELETE FROM tasks_app_task WHERE id = ANY(%(ids)s::uuid[]) RETURNING id, status
),
history AS (
    DELETE FROM tasks_app_taskevent WHERE task_id = ANY(%(ids)s::uuid[])
),
steps AS (
    DELETE FROM tasks_app_steprecord WHERE task_id = ANY(%(ids)s::uuid[])
),
-- After the tasks, in which order everybody locks.
deliveries AS (
    DELETE FROM tasks_app_delivery WHERE task_id = ANY(ARRAY(SELECT id FROM gone)) RETURNING id
),
attempts AS (
    DELETE FROM tasks_app_deliveryattempt WHERE delivery_id = ANY(ARRAY(SELECT id FROM deliveries))
),
entries AS (
    DELETE FROM tasks_app_inboxentry WHERE id = ANY(ARRAY(SELECT id FROM deliveries))
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', string_agg(hint, ',')) FROM (
        SELECT replace(id::text, '-', '') || ':0' AS hint, row_number() OVER () / 150 AS chunk FROM gone
    ) AS hints GROUP BY chunk
),
-- Where limits hold tasks back, one that no longer runs has made room for another.
offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'room:') WHERE %(limited)s AND EXISTS (SELECT FROM gone WHERE status = 'RUNNING')
)
SELECT id, (SELECT count(*) FROM told) + (SELECT count(*) FROM offered) FROM gone
