-- read_step: what an attempt at the task recorded of one step, as JSON text.
SELECT result::text FROM tasks_app_steprecord WHERE task_id = %(id)s AND name = %(name)s
