-- keep_claim: what was taken under this claim can be asked for again; claims long over are forgotten, a few at a time.
WITH over AS MATERIALIZED (
    SELECT id FROM tasks_app_claim
    WHERE expires_at < clock_timestamp() - interval '1 hour' AND id <> %(claim)s
    ORDER BY expires_at
    LIMIT 20
    FOR UPDATE SKIP LOCKED
),
forgotten AS (
    DELETE FROM tasks_app_claim c USING over WHERE c.id = over.id
)
INSERT INTO tasks_app_claim (id, tasks, expires_at)
VALUES (%(claim)s, %(tasks)s::jsonb, clock_timestamp() + make_interval(secs => %(lease)s))
ON CONFLICT (id) DO UPDATE SET tasks = excluded.tasks, expires_at = excluded.expires_at
