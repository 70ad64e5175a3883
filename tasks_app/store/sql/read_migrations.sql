-- read_migrations: the names of the migrations of tasks_app that the database has had.
SELECT name FROM django_migrations WHERE app = 'tasks_app'
