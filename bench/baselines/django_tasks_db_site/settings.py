"""Settings: one connection that stays open, and nothing else installed."""

from __future__ import annotations

import os
import secrets

import django

from asyncpoll import environment

SECRET_KEY = secrets.token_hex()
USE_TZ = True
# The backport is an app, Django's own framework is not.
INSTALLED_APPS = [*(["django_tasks"] if django.VERSION < (6, 0) else []), "django_tasks_db"]
DATABASES = {"default": {**environment.database(os.environ["DATABASE_URL"]), "CONN_MAX_AGE": None}}
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend"}}
