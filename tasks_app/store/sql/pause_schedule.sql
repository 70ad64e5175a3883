-- pause_schedule: the schedule's ticks pass without a task, or make tasks again; asking twice changes nothing.
UPDATE tasks_app_schedule SET paused = %(paused)s WHERE id = %(id)s AND paused <> %(paused)s RETURNING id
