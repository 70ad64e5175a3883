-- revoke_token: the token is worth nothing from now on, in every process that hears of it; asking twice changes nothing.
WITH revoked AS (
    UPDATE tasks_app_token SET revoked_at = clock_timestamp() WHERE id = %(id)s AND revoked_at IS NULL RETURNING id
)
SELECT id, pg_notify('asyncpoll_changed', 'token:' || id) FROM revoked
