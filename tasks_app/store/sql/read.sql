-- read: the tasks as they are now; a result of up to 64 KB comes with its row, a larger one is read by itself.
SELECT
    id, name, queue, owner, status, version, progress, message, attempt, error_type, error_message,
    status = 'RUNNING' AND lease_expires_at < clock_timestamp() AS stalled,
    cancel_requested, created_at, started_at, finished_at,
    CASE WHEN fits THEN result::text END,
    coalesce(NOT fits, false), trace_context::text
FROM tasks_app_task
-- The stored size first, which costs nothing to look at; but it is after compression.
CROSS JOIN LATERAL (
    SELECT CASE WHEN pg_column_size(result) <= 32768 THEN octet_length(result::text) <= 65536 ELSE result IS NULL END AS fits
) AS size
WHERE id = ANY(%(ids)s::uuid[])
