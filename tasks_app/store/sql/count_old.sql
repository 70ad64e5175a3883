-- count_old: how many tasks ended too long ago.
SELECT count(*) FROM tasks_app_task
WHERE finished_at IS NOT NULL
    AND finished_at < (SELECT clock_timestamp()) - make_interval(secs => %(older_than)s)
