"""Wiring: the system checks, and the tasks that installed apps declare."""

from __future__ import annotations

from contextlib import suppress

from django.apps import AppConfig

from tasks_app.errors import ConfigurationError


class TasksAppConfig(AppConfig):
    """The Django app of asyncpoll."""

    name = "tasks_app"
    verbose_name = "asyncpoll"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, and import every module that declares tasks, once all apps are loaded."""
        # Not above: both import models, which are not loaded then.
        from tasks_app import catalogue
        from tasks_app import checks as checks

        # A wrong setting is reported by the check, with its remedy, rather than by a traceback from here.
        with suppress(ConfigurationError):
            catalogue.discover()
