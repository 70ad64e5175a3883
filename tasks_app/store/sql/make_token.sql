-- make_token: a token exists, as the digest of its secret; its life is counted by the database's clock.
INSERT INTO tasks_app_token (id, digest, label, owner, scopes, created_at, expires_at)
SELECT %(id)s, %(digest)s, %(label)s, %(owner)s, %(scopes)s::jsonb, at, at + make_interval(secs => %(lifetime)s)
FROM clock_timestamp() AS at
RETURNING expires_at
