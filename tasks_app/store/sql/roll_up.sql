-- roll_up: of the hours that are due, the latest becomes rollups; the same again for an hour whose late finishers have come.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
upkeep AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtext('asyncpoll'), hashtext('roll_up')) AS is_mine
),
-- Oldest first there would be nothing for a plan until all the history is done.
hour AS MATERIALIZED (
    SELECT h.start, h.start + interval '1 hour' AS ends
    FROM now, generate_series(
        greatest(
            date_trunc('hour', now.at, 'UTC') - make_interval(hours => %(most_hours)s),
            date_trunc('hour', (SELECT min(finished_at) FROM tasks_app_task WHERE finished_at IS NOT NULL), 'UTC')
        ),
        date_trunc('hour', now.at, 'UTC') - interval '1 hour',
        interval '1 hour'
    ) AS h(start)
    LEFT JOIN tasks_app_rolledhour r ON r.started_at = h.start
    WHERE (SELECT is_mine FROM upkeep) AND EXISTS (
        SELECT FROM unnest(%(looks)s::float8[]) AS look(seconds)
        WHERE now.at >= h.start + interval '1 hour' + make_interval(secs => look.seconds)
            AND (r.rolled_at IS NULL OR r.rolled_at < h.start + interval '1 hour' + make_interval(secs => look.seconds))
    )
    ORDER BY h.start DESC
    LIMIT 1
),
ended AS MATERIALIZED (
    SELECT name, queue, status,
        ceil(ln(greatest(%(shortest)s, extract(epoch FROM finished_at - started_at)::float8 * 1000))
            / ln(%(gamma)s::float8))::smallint AS ran,
        ceil(ln(greatest(%(shortest)s, extract(epoch FROM started_at - greatest(run_at, created_at))::float8 * 1000))
            / ln(%(gamma)s::float8))::smallint AS waited
    FROM tasks_app_task
    WHERE finished_at >= (SELECT start FROM hour) AND finished_at < (SELECT ends FROM hour) AND started_at IS NOT NULL
),
ran AS (
    SELECT name, queue, status, sum(n)::bigint AS count, array_agg(ran ORDER BY ran) AS bins, array_agg(n ORDER BY ran) AS counts
    FROM (SELECT name, queue, status, ran, count(*)::int AS n FROM ended GROUP BY name, queue, status, ran) AS each
    GROUP BY name, queue, status
),
waited AS (
    SELECT name, queue, status, array_agg(waited ORDER BY waited) AS bins, array_agg(n ORDER BY waited) AS counts
    FROM (SELECT name, queue, status, waited, count(*)::int AS n FROM ended GROUP BY name, queue, status, waited) AS each
    GROUP BY name, queue, status
),
stored AS (
    INSERT INTO tasks_app_rollup AS known (
        task, started_at, span_seconds, queue, outcome, count, ran_bins, ran_counts, waited_bins, waited_counts
    )
    SELECT name, hour.start, 3600, queue, status, ran.count, ran.bins, ran.counts, waited.bins, waited.counts
    FROM hour, ran JOIN waited USING (name, queue, status)
    ON CONFLICT (task, started_at, span_seconds, queue, outcome) DO UPDATE SET
        count = excluded.count, ran_bins = excluded.ran_bins, ran_counts = excluded.ran_counts,
        waited_bins = excluded.waited_bins, waited_counts = excluded.waited_counts
    -- Tasks that were deleted since are measured all the same.
    WHERE excluded.count >= known.count
),
marked AS (
    INSERT INTO tasks_app_rolledhour (started_at, rolled_at) SELECT hour.start, now.at FROM hour, now
    ON CONFLICT (started_at) DO UPDATE SET rolled_at = excluded.rolled_at
)
SELECT start, (SELECT coalesce(sum(count), 0)::bigint FROM ran) FROM hour
