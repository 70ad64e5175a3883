-- sum_rollups: the bins of each type since then, summed over hours, queues and the outcomes asked for.
SELECT task, array_agg(bin ORDER BY bin) AS bins, array_agg(n ORDER BY bin) AS counts, min(first) AS first
FROM (
    SELECT r.task, b.bin, sum(b.n)::bigint AS n, min(r.started_at) AS first
    FROM tasks_app_rollup r, unnest(
        CASE WHEN %(waits)s THEN r.waited_bins ELSE r.ran_bins END,
        CASE WHEN %(waits)s THEN r.waited_counts ELSE r.ran_counts END
    ) AS b(bin, n)
    WHERE r.started_at >= (SELECT clock_timestamp()) - make_interval(secs => %(within)s)
        AND r.task = ANY(
            CASE WHEN %(task)s::text IS NULL THEN ARRAY(SELECT DISTINCT task FROM tasks_app_rollup) ELSE ARRAY[%(task)s::text] END
        )
        AND r.queue = coalesce(%(queue)s::text, r.queue) AND r.outcome = ANY(%(outcomes)s::text[])
    GROUP BY r.task, b.bin
) AS each
GROUP BY task
