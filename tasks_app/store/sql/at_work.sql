-- at_work: whether the server is busy with what it was told on another connection, that of its process `pid`.
SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %(pid)s AND state = 'active')
