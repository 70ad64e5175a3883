-- due_hosts: of each host (the empty one: inboxes) with deliveries to make, from one on, in how many seconds the first is due.
WITH RECURSIVE lane AS (
    (
        SELECT host, due_at FROM tasks_app_delivery WHERE state = 'DUE' AND host >= %(start)s ORDER BY host, due_at LIMIT 1
    )
    UNION ALL
    SELECT next.host, next.due_at FROM lane CROSS JOIN LATERAL (
        SELECT host, due_at FROM tasks_app_delivery WHERE state = 'DUE' AND host > lane.host ORDER BY host, due_at LIMIT 1
    ) AS next
)
SELECT host, extract(epoch FROM due_at - clock_timestamp())::float8 FROM lane LIMIT %(limit)s
