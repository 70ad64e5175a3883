-- take_deliveries: webhooks that are due are the caller's to send for a while, so many of each route; then somebody else's.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
route AS MATERIALIZED (SELECT * FROM json_to_recordset(%(routes)s::json) AS r(owner text, host text, room int)),
due AS MATERIALIZED (
    SELECT d.id FROM route CROSS JOIN LATERAL (
        SELECT id FROM tasks_app_delivery
        WHERE state = 'DUE' AND owner = route.owner AND host = route.host AND host > '' AND due_at <= (SELECT at FROM now)
        ORDER BY due_at, id
        LIMIT route.room
        FOR UPDATE SKIP LOCKED
    ) AS d
),
taken AS (
    UPDATE tasks_app_delivery d SET attempts = d.attempts + 1, due_at = now.at + make_interval(secs => %(lease)s)
    FROM due, now
    WHERE d.id = due.id
    RETURNING d.id, d.task_id, d.owner, d.target, d.host, d.attempts, now.at, d.owed_at
)
SELECT
    d.id, d.owner, d.target, d.host, d.attempts, d.at, extract(epoch FROM d.at - d.owed_at)::float8,
    s.salt, s.proof, CASE WHEN s.made_at > d.at - make_interval(secs => %(overlap)s) THEN s.previous_salt END, s.previous_proof,
    t.id, t.name, t.queue, t.status, t.version, t.error_type, t.error_message, t.finished_at,
    CASE WHEN fits THEN t.result::text END, coalesce(NOT fits, false)
FROM taken d
LEFT JOIN tasks_app_webhooksecret s ON s.owner = d.owner
LEFT JOIN tasks_app_task t ON t.id = d.task_id AND t.owner = d.owner AND t.finished_at IS NOT NULL
CROSS JOIN LATERAL (
    SELECT CASE WHEN pg_column_size(t.result) <= %(most)s THEN octet_length(t.result::text) <= %(most)s
        ELSE t.result IS NULL END AS fits
) AS size
