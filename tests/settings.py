"""The project's own settings, for tests. The database comes from DATABASE_URL, which tests/conftest.py provides."""

from asyncpoll.settings import *  # noqa: F403
from asyncpoll.settings import ASYNCPOLL as _ASYNCPOLL

ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", "testserver"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ASYNCPOLL = {
    **_ASYNCPOLL,
    "ANONYMOUS": True,
    "TASK_MODULES": [*_ASYNCPOLL.get("TASK_MODULES", []), "tests.sample_tasks"],
}
