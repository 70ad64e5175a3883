-- declare_schedules: each schedule is active as declared; one that is new, came back, or ticks at other times starts afresh.
INSERT INTO tasks_app_schedule AS s (
    name, task, cron, timezone, queue, owner, priority, args, kwargs, max_attempts, timeout_seconds,
    active, declared_at, paused, next_tick
)
SELECT
    n.name, n.task, n.cron, n.timezone, n.queue, n.owner, n.priority, n.args::jsonb, n.kwargs::jsonb,
    n.max_attempts, n.timeout_seconds, true, clock_timestamp(), false, n.next_tick
FROM unnest(
    %(names)s::text[], %(tasks)s::text[], %(crons)s::text[], %(timezones)s::text[], %(queues)s::text[],
    %(owners)s::text[], %(priorities)s::int[], %(args)s::text[], %(kwargs)s::text[], %(max_attempts)s::int[],
    %(timeouts)s::float8[], %(next_ticks)s::timestamptz[]
) AS n(
    name, task, cron, timezone, queue, owner, priority, args, kwargs, max_attempts, timeout_seconds, next_tick
)
ORDER BY n.name
ON CONFLICT (name) DO UPDATE SET
    task = excluded.task, cron = excluded.cron, timezone = excluded.timezone, queue = excluded.queue,
    owner = excluded.owner, priority = excluded.priority, args = excluded.args, kwargs = excluded.kwargs,
    max_attempts = excluded.max_attempts, timeout_seconds = excluded.timeout_seconds,
    active = true, declared_at = excluded.declared_at,
    next_tick = CASE WHEN s.active AND s.cron = excluded.cron AND s.timezone = excluded.timezone
        THEN s.next_tick ELSE excluded.next_tick END
