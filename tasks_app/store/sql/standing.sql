-- standing: by queue and type, how many tasks are due, wait for their time, run, and failed of those that ended last; each counted up to a bound.
WITH RECURSIVE found(queue, place) AS (
    SELECT min(t.queue), 1 FROM tasks_app_task t WHERE t.ready
    UNION ALL
    SELECT (SELECT min(t.queue) FROM tasks_app_task t WHERE t.ready AND t.queue > found.queue), found.place + 1
    FROM found WHERE found.queue IS NOT NULL AND found.place < %(most_queues)s
),
each AS (
    SELECT found.queue, due.name, 1 AS due, 0 AS later, 0 AS running, 0 AS failed
    FROM found CROSS JOIN LATERAL (
        SELECT t.name FROM tasks_app_task t WHERE t.ready AND t.queue = found.queue
        LIMIT (SELECT %(most)s / count(*) FROM found WHERE queue IS NOT NULL)
    ) AS due
    WHERE found.queue IS NOT NULL
    UNION ALL
    (
        SELECT queue, name, 0, 1, 0, 0 FROM tasks_app_task
        WHERE status = 'PENDING' AND NOT ready ORDER BY run_at LIMIT %(most)s
    )
    UNION ALL
    (
        SELECT queue, name, 0, 0, 1, 0 FROM tasks_app_task
        WHERE status = 'RUNNING' ORDER BY lease_expires_at LIMIT %(most)s
    )
    UNION ALL
    SELECT queue, name, 0, 0, 0, 1 FROM (
        SELECT queue, name, status FROM tasks_app_task
        WHERE finished_at >= (SELECT clock_timestamp()) - make_interval(secs => %(within)s)
        ORDER BY finished_at DESC, id DESC LIMIT %(most)s
    ) AS ended WHERE status = 'FAILED'
)
SELECT queue, name, sum(due)::int, sum(later)::int, sum(running)::int, sum(failed)::int
FROM each GROUP BY queue, name ORDER BY queue, name LIMIT %(most_rows)s
