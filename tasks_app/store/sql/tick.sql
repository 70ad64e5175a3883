-- tick: each schedule that is still at its tick moves on and, unless it is paused, enqueues its task: once, whoever ticks.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
upkeep AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('tick')) AS is_mine
),
due AS MATERIALIZED (
    SELECT s.id, d.task_id, d.tick, d.next_tick
    FROM unnest(
        %(names)s::text[], %(ticks)s::timestamptz[], %(next_ticks)s::timestamptz[], %(task_ids)s::uuid[]
    ) AS d(name, tick, next_tick, task_id)
    JOIN tasks_app_schedule s ON s.name = d.name
    WHERE (SELECT is_mine FROM upkeep) AND s.active AND s.next_tick = d.tick
    FOR UPDATE OF s SKIP LOCKED
),
ticked AS (
    UPDATE tasks_app_schedule s SET
        next_tick = due.next_tick,
        last_tick = CASE WHEN s.paused THEN s.last_tick ELSE due.tick END,
        last_task = CASE WHEN s.paused THEN s.last_task ELSE due.task_id END
    FROM due
    WHERE s.id = due.id
    RETURNING s.*
),
fresh AS (
    INSERT INTO tasks_app_task (
        id, name, queue, owner, priority, status, version, args, kwargs, error_type, error_message, traceback,
        message, attempt, failures, max_attempts, timeout_seconds, cancel_requested, run_at, ready, order_key,
        created_at
    )
    SELECT
        last_task, task, queue, owner, priority, 'PENDING', 1, args, kwargs, '', '', '',
        '', 0, 0, max_attempts, timeout_seconds, false, last_tick, true,
        last_tick - priority * make_interval(secs => %(head_start)s), now.at
    FROM ticked, now
    WHERE NOT paused
    RETURNING id, queue, created_at
),
history AS (
    INSERT INTO tasks_app_taskevent (task_id, version, kind, at, attempt, message)
    SELECT id, 1, 'enqueued', created_at, 0, '' FROM fresh
),
offered AS MATERIALIZED (
    SELECT pg_notify('asyncpoll_work', 'queue:' || queue) FROM (SELECT DISTINCT queue FROM fresh) AS q
)
SELECT name, last_tick, last_task, (SELECT count(*) FROM offered) FROM ticked WHERE NOT paused
