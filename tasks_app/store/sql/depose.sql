-- depose: the server process `pid` is ended if it is still the bridge's; nobody else's ever is.
SELECT pg_terminate_backend(holder.pid)
FROM pg_locks holder
WHERE holder.locktype = 'advisory' AND holder.granted AND holder.pid = %(pid)s
    AND holder.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND holder.classid = hashtext('asyncpoll')::oid AND holder.objid = hashtext('bridge')::oid AND holder.objsubid = 2
