"""A project that uses Django's Tasks framework with our backend."""

from __future__ import annotations

import django

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as _INSTALLED_APPS

if django.VERSION < (6, 0):
    INSTALLED_APPS = [*_INSTALLED_APPS, "django_tasks"]
TASKS = {"default": {"BACKEND": "tasks_app.backend.TasksBackend", "OPTIONS": {"timeout": 30}}}
