-- take_order: the oldest order that is not over, locked until the transaction ends; none while somebody else has it.
SELECT id, verb, owner, status, name, queue, "cursor", counted, done, skipped, placed_by
FROM tasks_app_order WHERE ended_at IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
