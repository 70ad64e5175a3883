-- read_inbox: what ended and its owner has not acknowledged, oldest first, at most `limit`; small results come along.
SELECT
    e.id, e.task_id, e.name, e.queue, e.status, e.version, e.error_type, e.error_message, e.finished_at,
    CASE WHEN fits THEN t.result::text END, coalesce(NOT fits, false), e.created_at
FROM tasks_app_inboxentry e
LEFT JOIN tasks_app_task t ON t.id = e.task_id AND t.owner = e.owner
CROSS JOIN LATERAL (
    SELECT CASE WHEN pg_column_size(t.result) <= %(most)s THEN octet_length(t.result::text) <= %(most)s
        ELSE t.result IS NULL END AS fits
) AS size
WHERE e.owner = %(owner)s AND e.acknowledged_at IS NULL
ORDER BY e.created_at, e.id
LIMIT %(limit)s
