-- ends_by_hour: by hour that was rolled up since then, how many tasks ended how, and the bins of how long they ran and had waited.
WITH hours AS MATERIALIZED (
    SELECT started_at, outcome, count, ran_bins, ran_counts, waited_bins, waited_counts FROM tasks_app_rollup
    WHERE span_seconds = 3600 AND started_at >= date_trunc('hour', clock_timestamp()) - make_interval(hours => %(hours)s)
),
ended AS (
    SELECT started_at, coalesce(sum(count) FILTER (WHERE outcome = 'SUCCESS'), 0)::bigint AS succeeded,
        coalesce(sum(count) FILTER (WHERE outcome = 'FAILED'), 0)::bigint AS failed,
        coalesce(sum(count) FILTER (WHERE outcome = 'CANCELLED'), 0)::bigint AS cancelled
    FROM hours GROUP BY started_at
),
ran AS (
    SELECT started_at, array_agg(bin) AS bins, array_agg(n) AS counts FROM (
        SELECT h.started_at, b.bin, sum(b.n)::bigint AS n FROM hours h, unnest(h.ran_bins, h.ran_counts) AS b(bin, n)
        WHERE h.outcome = 'SUCCESS' GROUP BY h.started_at, b.bin
    ) AS each GROUP BY started_at
),
waited AS (
    SELECT started_at, array_agg(bin) AS bins, array_agg(n) AS counts FROM (
        SELECT h.started_at, b.bin, sum(b.n)::bigint AS n
        FROM hours h, unnest(h.waited_bins, h.waited_counts) AS b(bin, n) GROUP BY h.started_at, b.bin
    ) AS each GROUP BY started_at
)
SELECT extract(epoch FROM started_at)::bigint, succeeded, failed, cancelled,
    coalesce(ran.bins, '{}'), coalesce(ran.counts, '{}'), coalesce(waited.bins, '{}'), coalesce(waited.counts, '{}')
FROM ended LEFT JOIN ran USING (started_at) LEFT JOIN waited USING (started_at) ORDER BY started_at
