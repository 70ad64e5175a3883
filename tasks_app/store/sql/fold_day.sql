-- fold_day: the oldest day that ended so many days ago becomes one rollup for each type, queue and outcome.
WITH upkeep AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('roll_up')) AS is_mine
),
day AS MATERIALIZED (
    SELECT date_trunc('day', min(started_at), 'UTC') AS start FROM tasks_app_rollup
    WHERE (SELECT is_mine FROM upkeep) AND span_seconds = 3600
        AND started_at < date_trunc('day', (SELECT clock_timestamp()), 'UTC') - make_interval(days => %(after_days)s)
),
hours AS (
    DELETE FROM tasks_app_rollup
    WHERE span_seconds = 3600 AND started_at >= (SELECT start FROM day)
        AND started_at < (SELECT start FROM day) + interval '1 day'
    RETURNING *
),
marks AS (
    DELETE FROM tasks_app_rolledhour WHERE started_at < (SELECT start FROM day) + interval '1 day'
),
ran AS (
    SELECT task, queue, outcome, sum(n)::bigint AS count, array_agg(bin ORDER BY bin) AS bins, array_agg(n ORDER BY bin) AS counts
    FROM (
        SELECT task, queue, outcome, b.bin, sum(b.n)::int AS n FROM hours, unnest(ran_bins, ran_counts) AS b(bin, n)
        GROUP BY task, queue, outcome, b.bin
    ) AS each GROUP BY task, queue, outcome
),
waited AS (
    SELECT task, queue, outcome, array_agg(bin ORDER BY bin) AS bins, array_agg(n ORDER BY bin) AS counts
    FROM (
        SELECT task, queue, outcome, b.bin, sum(b.n)::int AS n FROM hours, unnest(waited_bins, waited_counts) AS b(bin, n)
        GROUP BY task, queue, outcome, b.bin
    ) AS each GROUP BY task, queue, outcome
),
stored AS (
    INSERT INTO tasks_app_rollup (
        task, started_at, span_seconds, queue, outcome, count, ran_bins, ran_counts, waited_bins, waited_counts
    )
    SELECT task, day.start, 86400, queue, outcome, ran.count, ran.bins, ran.counts, waited.bins, waited.counts
    FROM day, ran JOIN waited USING (task, queue, outcome)
)
SELECT start, (SELECT count(*) FROM hours) FROM day WHERE start IS NOT NULL
