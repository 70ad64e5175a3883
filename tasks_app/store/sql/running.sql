-- running: how many attempts hold a task now, by queue and owner.
SELECT queue, owner, count(*) FROM tasks_app_task WHERE status = 'RUNNING' GROUP BY queue, owner
