-- stop_worker: the worker process is recorded as ended.
UPDATE tasks_app_workerprocess SET stopped_at = clock_timestamp(), running = 0 WHERE id = %(worker)s
