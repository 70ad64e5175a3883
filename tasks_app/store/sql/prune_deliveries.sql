-- prune_deliveries: deliveries that ended too long ago are gone with their attempts, at most `limit`, oldest first.
WITH upkeep AS MATERIALIZED (
    SELECT NOT %(alone)s OR pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('prune_deliveries')) AS is_mine
),
old AS MATERIALIZED (
    SELECT id FROM tasks_app_delivery
    WHERE (SELECT is_mine FROM upkeep) AND finished_at IS NOT NULL
        AND finished_at < (SELECT clock_timestamp()) - make_interval(secs => %(older_than)s)
    ORDER BY finished_at, id
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
),
attempts AS (
    DELETE FROM tasks_app_deliveryattempt WHERE delivery_id = ANY(ARRAY(SELECT id FROM old))
)
DELETE FROM tasks_app_delivery WHERE id = ANY(ARRAY(SELECT id FROM old)) RETURNING id
