-- clock: the database's time, in seconds since 1970.
SELECT extract(epoch FROM clock_timestamp())::float8
