-- prune_inboxes: entries acknowledged too long ago, or never for far longer, are gone, at most `limit` of each; none: kept for ever.
WITH upkeep AS MATERIALIZED (
    SELECT NOT %(alone)s OR pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('prune_inboxes')) AS is_mine
),
over AS MATERIALIZED (
    SELECT id FROM tasks_app_inboxentry
    WHERE (SELECT is_mine FROM upkeep) AND acknowledged_at IS NOT NULL
        AND acknowledged_at < (SELECT clock_timestamp()) - make_interval(secs => %(acknowledged)s)
    ORDER BY acknowledged_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
),
ignored AS MATERIALIZED (
    SELECT id FROM tasks_app_inboxentry
    WHERE (SELECT is_mine FROM upkeep) AND acknowledged_at IS NULL
        AND created_at < (SELECT clock_timestamp()) - make_interval(secs => %(ignored)s)
    ORDER BY created_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM tasks_app_inboxentry
WHERE id = ANY(ARRAY(SELECT id FROM over UNION ALL SELECT id FROM ignored))
RETURNING id
