-- read: the tasks as they are now; a result of up to 32 KB comes with its row, a larger one is read by itself.
SELECT
    id, name, queue, owner, status, version, progress, message, attempt, error_type, error_message,
    status = 'RUNNING' AND lease_expires_at < clock_timestamp() AS stalled,
    cancel_requested, created_at, started_at, finished_at,
    CASE WHEN pg_column_size(result) <= 32768 THEN result::text END,
    coalesce(pg_column_size(result) > 32768, false)
FROM tasks_app_task
WHERE id = ANY(%(ids)s::uuid[])
