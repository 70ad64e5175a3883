"""The project's own settings, for tests, on a Postgres that is started for the run unless DATABASE_URL names one."""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack

if "DATABASE_URL" not in os.environ:
    # Here and not in a fixture: pytest-django reads the settings before any conftest. Workers inherit the variable.
    from asyncpoll.embedded import temporary

    _server = ExitStack()
    os.environ["DATABASE_URL"] = _server.enter_context(temporary())
    atexit.register(_server.close)

from asyncpoll.settings import *  # noqa: F403
from asyncpoll.settings import ASYNCPOLL as _ASYNCPOLL
from asyncpoll.settings import INSTALLED_APPS as _INSTALLED_APPS

# Its `runserver` is all that it is installed for; each process of a test starts a third sooner without it.
INSTALLED_APPS = [app for app in _INSTALLED_APPS if app != "daphne"]

ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ASYNCPOLL = {
    **_ASYNCPOLL,
    "ANONYMOUS": True,
    "TASK_MODULES": [*_ASYNCPOLL["TASK_MODULES"], "tests.sample_tasks", "tests.external_tasks"],
}
