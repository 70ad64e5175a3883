-- prune: tasks that ended too long ago are gone with all that is kept of them, at most `limit`, oldest first; waiters are told.
WITH upkeep AS MATERIALIZED (
    SELECT NOT %(alone)s OR pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('prune')) AS is_mine
),
old AS MATERIALIZED (
    SELECT id, finished_at FROM tasks_app_task
    WHERE (SELECT is_mine FROM upkeep) AND finished_at IS NOT NULL
        AND finished_at < (SELECT clock_timestamp()) - make_interval(secs => %(older_than)s)
        -- What the batch before has deleted lies in front of the rest until a vacuum has come by.
        AND finished_at >= coalesce(%(since)s::timestamptz, '-infinity')
    ORDER BY finished_at, id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
),
gone AS (
    DELETE FROM tasks_app_task WHERE id = ANY(ARRAY(SELECT id FROM old)) RETURNING id
),
history AS (
    DELETE FROM tasks_app_taskevent WHERE task_id = ANY(ARRAY(SELECT id FROM old))
),
steps AS (
    DELETE FROM tasks_app_steprecord WHERE task_id = ANY(ARRAY(SELECT id FROM old))
),
told AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_changed', string_agg(hint, ',')) FROM (
        SELECT replace(id::text, '-', '') || ':0' AS hint, row_number() OVER () / 150 AS chunk FROM gone
    ) AS hints GROUP BY chunk
)
SELECT (SELECT count(*) FROM gone), (SELECT max(finished_at) FROM old), (SELECT count(*) FROM told)
