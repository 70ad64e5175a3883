-- lock_claim: until the transaction ends, whoever else asks under this claim waits.
SELECT 1 FROM pg_advisory_xact_lock(%(space)s, hashtext(%(claim)s::text))
