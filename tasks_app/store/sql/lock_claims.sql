-- lock_claims: until the transaction ends, nobody else who heeds a limit claims.
SELECT 1 FROM pg_advisory_xact_lock(hashtext('asyncpoll'), hashtext('claim'))
