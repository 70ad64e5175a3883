-- enqueue: every task is stored PENDING at version 1 with its first history row, or none is.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
fresh AS (
    INSERT INTO tasks_app_task (
        id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback,
        message, attempt, failures, max_attempts, timeout_seconds, cancel_requested, retried_from, trace_context,
        backend, run_at, ready, order_key, created_at
    )
    SELECT
        n.id, n.name, n.queue, n.owner, n.priority, 'PENDING', 1, n.args::jsonb, n.kwargs::jsonb, '', '', '',
        '', 0, 0, n.max_attempts, n.timeout_seconds, false, n.retried_from, n.trace_context::jsonb,
        n.backend, coalesce(n.run_at, now.at),
        n.run_at IS NULL OR n.run_at <= now.at,
        greatest(n.run_at, now.at) - n.priority * make_interval(secs => %(head_start)s),
        now.at
    FROM now, unnest(
        %(ids)s::uuid[], %(names)s::text[], %(queues)s::text[], %(owners)s::text[], %(priorities)s::int[],
        %(args)s::text[], %(kwargs)s::text[], %(max_attempts)s::int[], %(timeouts)s::float8[],
        %(run_ats)s::timestamptz[], %(retried_from)s::uuid[], %(trace_contexts)s::text[],
        %(backends)s::text[]
    ) AS n(
        id, name, queue, owner, priority, args, kwargs, max_attempts, timeout_seconds, run_at, retried_from,
        trace_context, backend
    )
    RETURNING id, created_at
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, message)
    SELECT id, 1, 'enqueued', created_at, 0, '' FROM fresh
)
SELECT id, created_at FROM fresh
