-- newest_durations: how long tasks ran and had waited, of those that ended last, at most `limit` looked at, by type.
SELECT name, array_agg(ran) AS ran, array_agg(waited) AS waited, min(finished_at) AS first
FROM (
    SELECT name, queue, status, started_at, finished_at,
        greatest(0, extract(epoch FROM finished_at - started_at)::float8 * 1000) AS ran,
        greatest(0, extract(epoch FROM started_at - greatest(run_at, created_at))::float8 * 1000) AS waited
    FROM tasks_app_task
    WHERE finished_at >= (SELECT clock_timestamp()) - make_interval(secs => %(within)s)
    ORDER BY finished_at DESC, id DESC
    LIMIT %(limit)s
) AS ended
WHERE started_at IS NOT NULL AND status = ANY(%(outcomes)s::text[]) AND name = coalesce(%(task)s::text, name) AND queue = coalesce(%(queue)s::text, queue)
GROUP BY name
