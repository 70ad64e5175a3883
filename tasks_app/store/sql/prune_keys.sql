-- prune_keys: idempotency keys that have expired are gone, at most `limit`, oldest first.
WITH upkeep AS MATERIALIZED (
    SELECT NOT %(alone)s OR pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('prune_keys')) AS is_mine
),
over AS MATERIALIZED (
    SELECT id FROM tasks_app_idempotencykey
    WHERE (SELECT is_mine FROM upkeep) AND expires_at < (SELECT clock_timestamp())
    ORDER BY expires_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM tasks_app_idempotencykey WHERE id = ANY(ARRAY(SELECT id FROM over)) RETURNING id
