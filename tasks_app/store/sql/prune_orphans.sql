-- prune_orphans: of `limit` tasks that have history, by id from `after` on, that of tasks which are gone is deleted.
WITH RECURSIVE upkeep AS MATERIALIZED (
    SELECT NOT %(alone)s OR pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('prune_orphans')) AS is_mine
),
-- The smallest id that a task made later than that can have: a UUIDv7 begins with its milliseconds.
horizon AS MATERIALIZED (
    SELECT (lpad(to_hex(
        greatest(0, floor(extract(epoch FROM clock_timestamp() - make_interval(secs => %(older_than)s)) * 1000))::bigint
    ), 12, '0') || repeat('0', 20))::uuid AS id
),
walk(task_id, step) AS (
    SELECT %(after)s::uuid, 0 FROM upkeep WHERE is_mine
    UNION ALL
    SELECT (
        SELECT e.task_id FROM tasks_app_taskevent e
        WHERE e.task_id > walk.task_id AND e.task_id < (SELECT id FROM horizon)
        ORDER BY e.task_id LIMIT 1
    ), walk.step + 1
    FROM walk WHERE walk.task_id IS NOT NULL AND walk.step < %(limit)s
),
orphan AS MATERIALIZED (
    SELECT task_id FROM walk
    WHERE step > 0 AND task_id IS NOT NULL AND NOT EXISTS (SELECT FROM tasks_app_task t WHERE t.id = walk.task_id)
),
gone AS (
    DELETE FROM tasks_app_taskevent WHERE task_id = ANY(ARRAY(SELECT task_id FROM orphan)) RETURNING version
),
steps AS (
    DELETE FROM tasks_app_steprecord WHERE task_id = ANY(ARRAY(SELECT task_id FROM orphan))
)
SELECT (SELECT count(*) FROM gone), (SELECT task_id FROM walk WHERE step = %(limit)s)
