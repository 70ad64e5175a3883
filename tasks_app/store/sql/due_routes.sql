-- due_routes: in how many seconds each route has a delivery to make: the inboxes (no host), and hosts of owners, from one on.
WITH RECURSIVE route AS (
    (
        SELECT owner, host, due_at FROM tasks_app_delivery
        WHERE state = 'DUE' AND host > '' AND (owner, host) >= (%(owner)s, %(host)s)
        ORDER BY owner, host, due_at LIMIT 1
    )
    UNION ALL
    SELECT next.owner, next.host, next.due_at FROM route CROSS JOIN LATERAL (
        SELECT owner, host, due_at FROM tasks_app_delivery
        WHERE state = 'DUE' AND host > '' AND (owner, host) > (route.owner, route.host)
        ORDER BY owner, host, due_at LIMIT 1
    ) AS next
),
inboxes AS (
    SELECT '' AS owner, host, due_at FROM tasks_app_delivery WHERE state = 'DUE' AND host = '' ORDER BY due_at LIMIT 1
),
each AS (TABLE inboxes UNION ALL (SELECT owner, host, due_at FROM route LIMIT %(limit)s))
SELECT owner, host, extract(epoch FROM due_at - clock_timestamp())::float8 FROM each
