"""What `up` makes sure of before it starts anything. Each failure is one sentence with its remedy."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

from asyncpoll.embedded.locks import FileLock
from asyncpoll.private import make_data_dir

OLDEST_POSTGRES = 15
_OWN_URLCONF = "asyncpoll.urls"
_CONNECT_SECONDS = 5


class UpError(RuntimeError):
    """`up` can't go on. The message is for the person who typed the command."""


@contextlib.contextmanager
def only_one(data_dir: Path) -> Iterator[None]:
    """Hold `data_dir` for this `up` alone. Raises UpError if another one has it."""
    try:
        lock = FileLock(make_data_dir(data_dir) / "up.lock")
    except OSError as error:
        raise UpError(
            f"The data directory {data_dir} can't be used ({error.strerror}): choose another with --data-dir."
        ) from error
    try:
        if not lock.try_claim():
            raise UpError(
                f"Another `manage.py up` (pid {lock.noted()}) runs on {data_dir}: "
                "stop it, or choose another directory with --data-dir."
            )
        lock.note(str(os.getpid()))
        yield
    finally:
        lock.close()


def refuse_other_settings() -> None:
    """Raises UpError in a project with settings of its own: `up` would migrate its database and add a user there."""
    if settings.ROOT_URLCONF != _OWN_URLCONF:
        raise UpError(
            f"`manage.py up` is for trying out asyncpoll with its own settings, and {settings.SETTINGS_MODULE} are a "
            "project's: start `manage.py migrate`, then `manage.py serve` and `manage.py runworker`, instead."
        )


def check_port(host: str, port: int) -> None:
    """Raises UpError unless `host`:`port` can be listened on now."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            reason = "another program listens there. Stop it, or choose another port with --port"
        else:
            reason = f"{error.strerror}. Choose another --host or --port"
        raise UpError(f"Can't listen on {host}, port {port}: {reason}.") from None


def check_database(url: str) -> None:
    """Raises UpError, without the password, unless a Postgres that is new enough answers at `url`."""
    parts = conninfo_to_dict(url)
    where = f"{parts.get('dbname')} on {parts.get('host', 'the local socket')}, port {parts.get('port', 5432)}"
    try:
        with psycopg.connect(url, connect_timeout=_CONNECT_SECONDS) as connection:
            version = connection.info.server_version // 10_000
    except psycopg.Error as error:
        reason = str(error).partition("\n")[0].rpartition("failed: ")[2].removeprefix("FATAL:  ")
        raise UpError(
            f"The database {where}, which DATABASE_URL names, can't be reached: {reason}. "
            "Start it, correct DATABASE_URL, or unset it to use the embedded Postgres."
        ) from None
    if version < OLDEST_POSTGRES:
        raise UpError(
            f"The database {where}, which DATABASE_URL names, is Postgres {version}; "
            f"{OLDEST_POSTGRES} or newer is needed."
        )
