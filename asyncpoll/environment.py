"""Environment variables into the values that Django's settings want. A wrong one fails at start, with its remedy."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import urlsplit

import psycopg
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

_DIGITS = re.compile("[0-9]{1,5}")
_EXAMPLE = "postgresql://user:password@host:5432/name"
_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_FLAGS = {"0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}
# What a query says when nothing was configured: libpq quotes the socket's path.
_NO_DATABASE = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": "none",
    "HOST": "/DATABASE_URL is not set; set it or use manage.py",
}


def flag(name: str, default: bool = False) -> bool:
    """True for 1, true or yes; False for 0, false or no; `default` if the variable is not set."""
    value = os.environ.get(name, "")
    if not value:
        return default
    if value.lower() not in _FLAGS:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be 1 or 0.")
    return _FLAGS[value.lower()]


def choice(name: str, *allowed: str) -> str:
    """One of `allowed`; an empty text if the variable is not set."""
    value = os.environ.get(name, "")
    if value and value not in allowed:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be {' or '.join(allowed)}.")
    return value


def level(name: str, default: str) -> str:
    """The name of a logging level, in whichever case; `default` if the variable is not set."""
    value = os.environ.get(name, "")
    if value and value.upper() not in _LEVELS:
        raise ImproperlyConfigured(f"{name} is {value!r}; it must be one of {', '.join(_LEVELS)}.")
    return value.upper() or default


def words(name: str, default: str) -> list[str]:
    """The comma-separated words of a variable."""
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def numbers(*names: str) -> dict[str, int | float]:
    """Those of `names` whose variable ASYNCPOLL_<name> is set; each must be a number."""
    variables = {name: os.environ.get(f"ASYNCPOLL_{name}", "") for name in names}
    return {name: _number(f"ASYNCPOLL_{name}", value) for name, value in variables.items() if value}


def _number(name: str, value: str) -> int | float:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    raise ImproperlyConfigured(f"{name} is {value!r}; it must be a number.")


def database(url: str) -> dict[str, Any]:
    """The entry of DATABASES for a Postgres URL. Raises ImproperlyConfigured, without repeating the URL.

    No URL gives an entry whose first query fails and says so, for commands that need no database.
    """
    if not url:
        return dict(_NO_DATABASE)
    parts = _parts(url)
    name = parts.pop("dbname", "")
    if not name and "service" not in parts:
        raise ImproperlyConfigured(f"DATABASE_URL names no database: write {_EXAMPLE}")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "CONN_MAX_AGE": 0,  # under ASGI a connection that is kept is one per thread, for ever
        "OPTIONS": parts,
    }


def _parts(url: str) -> dict[str, str]:
    scheme = url.partition("://")[0]
    if scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(
            f"DATABASE_URL is not the URL of a Postgres database; tasks need Postgres 15 or newer: write {_EXAMPLE}"
        )
    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except psycopg.ProgrammingError:
        parts = {}
    # libpq's own messages quote pieces of the URL, which may be the password's; so would a host with an @ in it.
    if not parts or "@" in parts.get("host", "") or not _is_port(parts.get("port", "")):
        raise ImproperlyConfigured(
            f"DATABASE_URL can't be read: write {_EXAMPLE}, with special characters percent-encoded"
        )
    return parts


def _is_port(text: str) -> bool:
    return all(
        _DIGITS.fullmatch(port) and 0 < int(port) < 65_536 for port in text.split(",") if port
    )


def channel_layer(redis_url: str) -> dict[str, Any]:
    """The entry of CHANNEL_LAYERS that carries wake-ups: through Redis, or private to each process.

    Raises ImproperlyConfigured, without repeating the URL.
    """
    if not redis_url:
        return {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1000}}
    if not redis_url.startswith(("redis://", "rediss://", "unix://")):
        raise ImproperlyConfigured(
            "CHANNEL_REDIS_URL is not the URL of a Redis server: write redis://:password@host:6379, "
            "rediss:// for TLS, or unix:///path"
        )
    try:
        _ = urlsplit(redis_url).port
    except ValueError:
        # Not chained: it may quote a piece of the password.
        raise ImproperlyConfigured(
            "CHANNEL_REDIS_URL can't be read: write redis://:password@host:6379, with special characters percent-encoded"
        ) from None
    return {"BACKEND": "tasks_app.wakeup.redis.RedisLayer", "CONFIG": {"hosts": [redis_url]}}
