-- read_steps: what the attempts at the task recorded of its steps, as JSON text, in the order they were done.
SELECT name, result::text FROM tasks_app_steprecord WHERE task_id = %(id)s ORDER BY at, name
