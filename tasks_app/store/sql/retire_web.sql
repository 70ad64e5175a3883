-- retire_web: a web process that goes away is forgotten.
DELETE FROM tasks_app_webprocess WHERE id = %(id)s
