"""How this project is started for a measurement."""

from __future__ import annotations

import sys


def manage(*arguments: str) -> list[str]:
    """The command line of a management command."""
    return [sys.executable, "manage.py", *arguments]


def environment(url: str, settings: str = "asyncpoll.settings") -> dict[str, str]:
    """Variables for a process that uses the database at `url`."""
    return {
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": settings,
        "DJANGO_SECRET_KEY": "not a secret: this process lives for a benchmark",
        "DJANGO_DEBUG": "0",
        "ASYNCPOLL_LOG_LEVEL": "WARNING",
    }
