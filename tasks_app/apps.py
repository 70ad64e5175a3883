"""Wiring: checks, observers, and the tasks that installed apps declare."""

from __future__ import annotations

from django.apps import AppConfig


class TasksAppConfig(AppConfig):
    """The Django app of asyncpoll."""

    name = "tasks_app"
    verbose_name = "Tasks"
    default_auto_field = "django.db.models.BigAutoField"
