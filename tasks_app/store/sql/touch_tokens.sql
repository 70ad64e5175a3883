-- touch_tokens: these tokens are in use, which is written down at most once in so many seconds.
UPDATE tasks_app_token SET last_used_at = clock_timestamp()
WHERE id = ANY(
    SELECT id FROM tasks_app_token
    WHERE id = ANY(%(ids)s::text[])
        AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - make_interval(secs => %(every)s))
    ORDER BY id FOR UPDATE SKIP LOCKED
)
