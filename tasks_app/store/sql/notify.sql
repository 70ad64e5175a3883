-- notify: tell the workers of these queues that there may be work, and upkeep in how many seconds some will be due.
SELECT pg_notify('asyncpoll_work', 'queue:' || queue) FROM unnest(%(queues)s::text[]) AS queue
UNION ALL
SELECT pg_notify('asyncpoll_work', 'due:' || extract(epoch FROM %(due)s::timestamptz - clock_timestamp())::float8)
WHERE %(due)s::timestamptz IS NOT NULL
