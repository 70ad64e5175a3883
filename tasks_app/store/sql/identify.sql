-- identify: a name for this database that no other one has, however it is reached.
SELECT (pg_control_system()).system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database())
