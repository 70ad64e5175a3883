-- keep_key: the request and the task that this key stands for: the given ones, unless it is in use. Who comes meanwhile waits a little.
INSERT INTO tasks_app_idempotencykey AS kept (id, request, task_id, expires_at)
SELECT %(key)s, %(request)s, %(task)s, statement_timestamp() + make_interval(secs => %(live)s)
-- Of whoever has the key and does not end: a process that is frozen must not take everybody's connections along.
WHERE set_config('lock_timeout', %(patience)s::text, true) IS NOT NULL
ON CONFLICT (id) DO UPDATE SET
    request = CASE WHEN kept.expires_at > statement_timestamp() THEN kept.request ELSE excluded.request END,
    task_id = CASE WHEN kept.expires_at > statement_timestamp() THEN kept.task_id ELSE excluded.task_id END,
    expires_at = CASE WHEN kept.expires_at > statement_timestamp() THEN kept.expires_at ELSE excluded.expires_at END
RETURNING request, task_id
