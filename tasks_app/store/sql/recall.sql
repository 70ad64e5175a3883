-- recall: one task of the Tasks framework as it is now, with its result, and the worker of each attempt.
SELECT
    t.id, t.name, t.queue, t.priority, t.backend, t.status, t.version, t.progress, t.message, t.cancel_requested,
    t.args::text, t.kwargs::text, t.created_at, t.run_at, attempts.first_started_at, t.started_at, t.finished_at,
    attempts.workers, t.result::text, t.error_type, t.error_message, t.error_class, t.traceback
FROM tasks_app_task t, LATERAL (
    SELECT
        min(e.at) AS first_started_at,
        coalesce(array_agg(e.worker ORDER BY e.version), '{}') AS workers
    FROM tasks_app_taskevent e
    WHERE e.task_id = t.id AND e.kind = 'started'
) AS attempts
WHERE t.id = %(id)s AND t.backend <> ''
