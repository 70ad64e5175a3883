-- lead: this session becomes the bridge unless another one is; tells whether it did, and whose server process is it now.
WITH attempt AS MATERIALIZED (
    SELECT pg_try_advisory_lock(hashtext('asyncpoll'), hashtext('bridge')) AS is_mine
)
SELECT attempt.is_mine, CASE WHEN attempt.is_mine THEN pg_backend_pid() ELSE holder.pid END
FROM attempt LEFT JOIN pg_locks holder ON NOT attempt.is_mine
    AND holder.locktype = 'advisory' AND holder.granted
    AND holder.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND holder.classid = hashtext('asyncpoll')::oid AND holder.objid = hashtext('bridge')::oid AND holder.objsubid = 2
