"""What a server does not start with where others can reach it: a developer's settings."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

from django.conf import settings

from asyncpoll.loopback import is_loopback
from tasks_app import conf
from tasks_app.errors import ConfigurationError

# As in Django's own check of deployments, which only warns.
_PREFIX = "django-insecure-"
_SHORTEST_KEY, _FEWEST_CHARACTERS = 50, 5
# Django's test client has the last one.
_LOCAL_NAMES = ("localhost", "testserver")


def refuse_exposure(host: str | None = None) -> None:
    """Raises ConfigurationError where others can reach this server and its settings are those of a developer's desk.

    Others can reach it when it listens on `host`, if that is known and not a loopback address, or when ALLOWED_HOSTS
    has a name that is not this machine's own: then a proxy stands before it, or it listens there by other means.
    """
    reason = _why_public(host)
    faults = list(_faults()) if reason else []
    if faults:
        raise ConfigurationError(
            f"This server can be reached by others, as {reason}. {' '.join(faults)}"
        )


def host_of(fd: int) -> str | None:
    """What an inherited socket listens on; None for what is none, which fails by itself.

    A path in the file system is nobody's loopback: it is there for a proxy.
    """
    try:
        with socket.socket(fileno=os.dup(fd)) as listener:
            address = listener.getsockname()
    except OSError:
        return None
    return str(address[0]) if isinstance(address, tuple) else "a socket in the file system"


def _why_public(host: str | None) -> str:
    if host is not None and not is_loopback(host):
        return f"it listens on {host}"
    foreign = [name for name in settings.ALLOWED_HOSTS if not _is_local(name)]
    return f"ALLOWED_HOSTS has {foreign[0]!r}" if foreign else ""


def _is_local(name: str) -> bool:
    bare = name.strip("[]").removeprefix(".").lower()
    return bare in _LOCAL_NAMES or bare.endswith(".localhost") or is_loopback(bare)


def _faults() -> Iterator[str]:
    if settings.DEBUG:
        yield "DEBUG is on, which shows settings and code to whoever meets an error; set it to False (asyncpoll's own settings: unset DJANGO_DEBUG)."
    if conf.current().ANONYMOUS:
        yield (
            "Anonymous use is on, which is for development; set ASYNCPOLL['ANONYMOUS'] to False (asyncpoll's own "
            "settings: unset ASYNCPOLL_ANONYMOUS) and use tokens."
        )
    key = settings.SECRET_KEY
    if key.startswith(_PREFIX) or len(key) < _SHORTEST_KEY or len(set(key)) < _FEWEST_CHARACTERS:
        yield (
            f"SECRET_KEY is a default, or shorter than {_SHORTEST_KEY} characters, so that tickets and sessions can be "
            "forged; set SECRET_KEY to a long random one (asyncpoll's own settings: DJANGO_SECRET_KEY)."
        )
