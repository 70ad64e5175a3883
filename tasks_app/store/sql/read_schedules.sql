-- read_schedules: the database's time, and when each of these schedules that is active ticks next.
SELECT now.at, s.name, s.cron, s.timezone, s.next_tick
FROM (SELECT clock_timestamp() AS at) AS now
LEFT JOIN tasks_app_schedule s ON s.active AND s.name = ANY(%(names)s::text[])
