-- notify: tell the workers of these queues that there may be work.
SELECT pg_notify('asyncpoll_work', 'queue:' || queue) FROM unnest(%(queues)s::text[]) AS queue
