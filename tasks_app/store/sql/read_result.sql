-- read_result: the stored result of one task, as JSON text.
SELECT result::text FROM tasks_app_task WHERE id = %(id)s
