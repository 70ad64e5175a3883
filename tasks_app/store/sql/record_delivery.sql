-- record_delivery: an attempt to deliver is on record, and so is what follows: the end, or the next attempt.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
attempt AS (
    INSERT INTO tasks_app_deliveryattempt (delivery_id, number, at, status, error, duration_ms)
    SELECT id, %(attempt)s, now.at, %(status)s, %(error)s, %(duration_ms)s FROM tasks_app_delivery, now WHERE id = %(id)s
    ON CONFLICT (delivery_id, number) DO NOTHING
)
UPDATE tasks_app_delivery SET
    state = %(state)s, last_error = %(error)s,
    due_at = CASE WHEN %(state)s = 'DUE' THEN now.at + make_interval(secs => %(pause)s) END,
    finished_at = CASE WHEN %(state)s <> 'DUE' THEN now.at END
FROM now
-- Somebody else may have taken it since, for whom a failure here says nothing.
WHERE id = %(id)s AND state = 'DUE' AND (attempts = %(attempt)s OR %(state)s = 'DELIVERED')
RETURNING id
