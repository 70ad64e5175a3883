-- read_results: the stored results of some tasks, as JSON text.
SELECT id, result::text FROM tasks_app_task WHERE id = ANY(%(ids)s::uuid[])
