"""How to reach the database without the ORM: the parameters of Django's alias, for connections of our own."""

from __future__ import annotations

from typing import Any

from django.db import connections
from psycopg import ProgrammingError, conninfo

from tasks_app import conf
from tasks_app.errors import ConfigurationError

# Bounds an attempt to connect, so that a blackholed server costs seconds and not minutes.
CONNECT_TIMEOUT_SECONDS = 2
# The same for what is connected: a peer that went without a word (a failover, a cable) is noticed well within a lease,
# and not after the quarter of an hour that TCP goes on trying. Of no effect on a Unix socket.
_MORTAL_LINK = {
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 6_000,
}


def parameters(application: str) -> dict[str, Any]:
    """libpq keywords for the tasks' database. `application` names the connection in pg_stat_activity."""
    given = connections[conf.current().DATABASE].get_connection_params()
    keywords = {key: value for key, value in given.items() if isinstance(value, str | int)}
    return _bounded(keywords, application)


def listen_parameters(application: str) -> dict[str, Any]:
    """The same for LISTEN, which must not go through a transaction pooler."""
    url = conf.current().LISTEN_DATABASE_URL
    if not url:
        return parameters(application)
    try:
        return _bounded(dict(conninfo.conninfo_to_dict(url)), application)
    except ProgrammingError:
        # Not chained: libpq quotes pieces of the URL, which may be the password's.
        raise ConfigurationError(
            "LISTEN_DATABASE_URL can't be read: write postgresql://user:password@host:5432/name, with special characters "
            "percent-encoded."
        ) from None


def _bounded(keywords: dict[str, Any], application: str) -> dict[str, Any]:
    bounds = {"connect_timeout": CONNECT_TIMEOUT_SECONDS, **_MORTAL_LINK}
    return {**bounds, **keywords, "application_name": f"asyncpoll {application}"}
