-- run_again: a new PENDING task with the name, arguments and limits of one that is over; the old one stays as it is.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
fresh AS (
    INSERT INTO tasks_app_task (
        id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback,
        message, attempt, failures, max_attempts, timeout_seconds, cancel_requested, retried_from, trace_context,
        backend, run_at, ready, order_key, created_at
    )
    SELECT
        %(new_id)s, name, queue, owner, priority, 'PENDING', 1, args, kwargs, '', '', '',
        '', 0, 0, max_attempts, timeout_seconds, false, id, trace_context,
        backend, now.at, true, now.at - priority * make_interval(secs => %(head_start)s), now.at
    FROM now, tasks_app_task
    WHERE id = %(id)s AND status IN ('SUCCESS', 'FAILED', 'CANCELLED')
    RETURNING id, queue, created_at
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, message)
    SELECT id, 1, 'enqueued', created_at, 0, '' FROM fresh
)
SELECT id, queue FROM fresh
