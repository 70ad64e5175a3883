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
-- A mark keeps an hour that is folded from being rolled up again, for as long as anybody would.
marks AS (
    DELETE FROM tasks_app_rolledhour
    WHERE started_at < (SELECT start FROM day)
        AND started_at < (SELECT clock_timestamp()) - make_interval(hours => %(most_hours)s + 24)
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
    INSERT INTO tasks_app_rollup AS known (
        task, started_at, span_seconds, queue, outcome, count, ran_bins, ran_counts, waited_bins, waited_counts
    )
    SELECT task, day.start, 86400, queue, outcome, ran.count, ran.bins, ran.counts, waited.bins, waited.counts
    FROM day, ran JOIN waited USING (task, queue, outcome)
    -- Of a history that is rolled up only now, a part of the day may have been folded before.
    ON CONFLICT (task, started_at, span_seconds, queue, outcome) DO UPDATE SET
        count = known.count + excluded.count,
        ran_bins = known.ran_bins || excluded.ran_bins, ran_counts = known.ran_counts || excluded.ran_counts,
        waited_bins = known.waited_bins || excluded.waited_bins,
        waited_counts = known.waited_counts || excluded.waited_counts
)
SELECT start, (SELECT count(*) FROM hours) FROM day WHERE start IS NOT NULL
