-- ends_by_minute: of the tasks that ended last, at most `most` looked at: by minute, how many ended how, and percentiles of how long they ran and had waited.
WITH ended AS MATERIALIZED (
    SELECT date_trunc('minute', finished_at) AS minute, status,
        -- Of what was cancelled before it began, greatest() would make 0.
        CASE WHEN started_at IS NOT NULL THEN greatest(0, extract(epoch FROM finished_at - started_at))::float8 END AS ran,
        CASE WHEN started_at IS NOT NULL THEN greatest(0, extract(epoch FROM started_at - greatest(run_at, created_at)))::float8 END
            AS waited
    FROM (
        SELECT status, run_at, created_at, started_at, finished_at FROM tasks_app_task
        WHERE finished_at >= (SELECT clock_timestamp()) - make_interval(secs => %(within)s)
        ORDER BY finished_at DESC, id DESC LIMIT %(most)s
    ) AS newest
)
SELECT extract(epoch FROM minute)::bigint,
    count(*) FILTER (WHERE status = 'SUCCESS'), count(*) FILTER (WHERE status = 'FAILED'),
    count(*) FILTER (WHERE status = 'CANCELLED'),
    percentile_disc(%(shares)s::float8[]) WITHIN GROUP (ORDER BY ran) FILTER (WHERE status = 'SUCCESS' AND ran IS NOT NULL),
    percentile_disc(%(shares)s::float8[]) WITHIN GROUP (ORDER BY waited) FILTER (WHERE waited IS NOT NULL)
FROM ended GROUP BY minute ORDER BY minute
