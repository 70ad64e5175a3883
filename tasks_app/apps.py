"""Wiring: checks, observers, and the tasks that installed apps declare."""

from __future__ import annotations

from django.apps import AppConfig


class TasksAppConfig(AppConfig):
    """The Django app of asyncpoll."""

    name = "tasks_app"
    verbose_name = "Tasks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Discover tasks once every app is loaded."""
        from tasks_app import catalogue

        catalogue.discover()
