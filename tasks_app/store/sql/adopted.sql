-- adopted: of tasks that were just claimed, what Django's Tasks framework tells a task of itself and of its attempts.
SELECT t.id, json_build_object(
    'backend', t.backend, 'priority', t.priority, 'created_at', t.created_at, 'run_at', t.run_at,
    'first_started_at', past.first_started_at, 'started_at', t.started_at, 'workers', past.workers,
    'error_type', t.error_type, 'error_message', t.error_message, 'error_class', t.error_class, 'traceback', t.traceback
)::text
FROM unnest(%(ids)s::uuid[]) AS asked(id) CROSS JOIN LATERAL (
    SELECT * FROM tasks_app_task WHERE id = asked.id LIMIT 1
) AS t CROSS JOIN LATERAL (
    SELECT min(at) AS first_started_at, array_agg(worker ORDER BY version) AS workers
    FROM tasks_app_taskevent WHERE task_id = t.id AND kind = 'started'
) AS past
