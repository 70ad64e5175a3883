"""How this project is started for a measurement."""

from __future__ import annotations

import sys

HOLD_SECONDS = 240
"""Longer than a run takes."""


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


def holding(url: str, most_held: int, settings: str = "asyncpoll.settings") -> dict[str, str]:
    """The same for a web process that holds so many requests, each for as long as a measurement takes."""
    limit = str(2 * most_held + 1000)
    return {
        **environment(url, settings),
        "CHANNEL_REDIS_URL": "",
        "ASYNCPOLL_ANONYMOUS": "1",
        "ASYNCPOLL_MAX_HELD": limit,
        "ASYNCPOLL_MAX_HELD_PER_OWNER": limit,
        "ASYNCPOLL_MAX_HOLD_SECONDS": str(HOLD_SECONDS),
    }
