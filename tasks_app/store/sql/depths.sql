-- depths: of at most `most_queues` queues, how many tasks are ready, counted up to a share of `most`, and how long those next in line wait.
WITH RECURSIVE found(queue, place) AS (
    SELECT min(t.queue), 1 FROM tasks_app_task t WHERE t.ready
    UNION ALL
    SELECT (SELECT min(t.queue) FROM tasks_app_task t WHERE t.ready AND t.queue > found.queue), found.place + 1
    FROM found WHERE found.queue IS NOT NULL AND found.place < %(most_queues)s
)
SELECT
    found.queue,
    (SELECT count(*) FROM (
        SELECT 1 FROM tasks_app_task t WHERE t.ready AND t.queue = found.queue
        LIMIT (SELECT least(%(most_each)s, %(most)s / count(*)) FROM found WHERE queue IS NOT NULL)
    ) AS counted),
    (
        -- A loose scan of the index: one descent for each owner, to the first task in its line.
        WITH RECURSIVE head(owner, run_at, place) AS (
            (
                SELECT t.owner, greatest(t.run_at, t.created_at), 1 FROM tasks_app_task t
                WHERE t.ready AND t.queue = found.queue
                ORDER BY t.owner, t.order_key, t.id LIMIT 1
            )
            UNION ALL
            SELECT ahead.owner, ahead.run_at, head.place + 1
            FROM head CROSS JOIN LATERAL (
                SELECT t.owner, greatest(t.run_at, t.created_at) AS run_at FROM tasks_app_task t
                WHERE t.ready AND t.queue = found.queue AND t.owner > head.owner
                ORDER BY t.owner, t.order_key, t.id LIMIT 1
            ) AS ahead
            WHERE head.place < %(most_owners)s
        )
        SELECT greatest(0, extract(epoch FROM clock_timestamp() - min(run_at)))::float8 FROM head
    )
FROM found WHERE found.queue IS NOT NULL
