-- lanes: who has ready tasks on which queue: from the owner after the last one seen on and round, at most `most` a queue.
WITH RECURSIVE found(queue) AS (
    SELECT min(t.queue) FROM tasks_app_task t WHERE t.ready AND %(queues)s::text[] IS NULL
    UNION ALL
    SELECT (SELECT min(t.queue) FROM tasks_app_task t WHERE t.ready AND t.queue > found.queue)
    FROM found WHERE found.queue IS NOT NULL
),
line AS MATERIALIZED (
    SELECT asked.queue, coalesce(s.owner, '') AS seen FROM (
        SELECT queue FROM found WHERE queue <> ALL(%(excluded)s::text[])
        UNION
        SELECT unnest(%(queues)s::text[])
    ) AS asked LEFT JOIN unnest(%(seen_queues)s::text[], %(seen_owners)s::text[]) AS s(queue, owner) USING (queue)
)
SELECT line.queue, ring.owner FROM line CROSS JOIN LATERAL (
    -- A loose scan of the index: one descent for each owner, however many tasks each has.
    WITH RECURSIVE step(owner, place, again) AS (
        SELECT line.seen, 0, false
        UNION ALL
        SELECT coalesce(ahead.owner, first.owner), step.place + 1, ahead.owner IS NULL OR step.again
        FROM step LEFT JOIN LATERAL (
            SELECT t.owner FROM tasks_app_task t
            WHERE t.ready AND t.queue = line.queue AND t.owner > step.owner
            ORDER BY t.owner LIMIT 1
        ) AS ahead ON true LEFT JOIN LATERAL (
            SELECT t.owner FROM tasks_app_task t
            WHERE t.ready AND t.queue = line.queue AND ahead.owner IS NULL AND NOT step.again
            ORDER BY t.owner LIMIT 1
        ) AS first ON true
        WHERE coalesce(ahead.owner, first.owner) <= line.seen OR (ahead.owner IS NOT NULL AND NOT step.again)
    )
    SELECT owner, place FROM step WHERE place > 0 LIMIT %(most)s
) AS ring
ORDER BY ring.place, line.queue
