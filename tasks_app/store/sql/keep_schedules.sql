-- keep_schedules: these stay active; others that no process has spoken for in `lapse` seconds are active no more.
WITH now AS MATERIALIZED (SELECT clock_timestamp() AS at),
-- Somebody else may be saying the same.
due AS MATERIALIZED (
    SELECT s.id FROM tasks_app_schedule s, now
    WHERE s.active AND s.name = ANY(%(names)s::text[]) AND s.declared_at < now.at - make_interval(secs => %(fresh)s)
    ORDER BY s.name
    FOR UPDATE OF s SKIP LOCKED
),
kept AS (
    UPDATE tasks_app_schedule s SET declared_at = now.at FROM due, now WHERE s.id = due.id
),
lapsed AS (
    UPDATE tasks_app_schedule s SET active = false FROM now
    WHERE s.active AND s.name <> ALL(%(names)s::text[]) AND s.declared_at < now.at - make_interval(secs => %(lapse)s)
    RETURNING s.name
)
SELECT name, true FROM tasks_app_schedule WHERE active AND name = ANY(%(names)s::text[])
UNION ALL
SELECT name, false FROM lapsed
