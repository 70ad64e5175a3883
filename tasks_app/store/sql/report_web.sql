-- report_web: what a web process says of itself is there for all to see; who has said nothing for an hour is forgotten.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
silent AS (
    DELETE FROM tasks_app_webprocess w USING now WHERE w.heartbeat_at < now.at - interval '1 hour' AND w.id <> %(id)s
),
said AS (
    INSERT INTO tasks_app_webprocess (
        id, hostname, pid, started_at, heartbeat_at, held, most_held, draining, lag_seconds, bridge, linked, layered,
        woken, wake_p50, wake_p95
    )
    SELECT
        %(id)s, %(hostname)s, %(pid)s, at, at, %(held)s, %(most_held)s, %(draining)s, %(lag_seconds)s, %(bridge)s,
        %(linked)s, %(layered)s, %(woken)s, %(wake_p50)s, %(wake_p95)s
    FROM now
    ON CONFLICT (id) DO UPDATE SET
        heartbeat_at = excluded.heartbeat_at, held = excluded.held, most_held = excluded.most_held,
        draining = excluded.draining, lag_seconds = excluded.lag_seconds, bridge = excluded.bridge,
        linked = excluded.linked, layered = excluded.layered, woken = excluded.woken,
        wake_p50 = excluded.wake_p50, wake_p95 = excluded.wake_p95
)
SELECT extract(epoch FROM at)::float8 FROM now
