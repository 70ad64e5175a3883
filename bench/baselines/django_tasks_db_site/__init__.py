"""A project that uses django-tasks-db: Django's Tasks framework on its database backend."""
