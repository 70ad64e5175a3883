-- backend: the server process that answers on this connection.
SELECT pg_backend_pid()
