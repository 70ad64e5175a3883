-- find_tokens: those of the ids that are tokens, as they are now; times are in seconds from now, by the database's clock.
SELECT
    id, digest, owner, scopes::text, revoked_at IS NOT NULL,
    extract(epoch FROM expires_at - clock_timestamp())::float8,
    extract(epoch FROM clock_timestamp() - last_used_at)::float8
FROM tasks_app_token
WHERE id = ANY(%(ids)s::text[])
