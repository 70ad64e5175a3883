"""Databases for a test alone, on any server."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

ROOT = Path(__file__).resolve().parents[1]


@contextmanager
def created(server: str, template: str = "template1") -> Iterator[str]:
    """The URL of a new database on the server of the URL `server`, a copy of `template`; dropped afterwards."""
    name = f"asyncpoll_{secrets.token_hex(6)}"
    _execute(server, "CREATE DATABASE {} TEMPLATE {}", name, template)
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        _execute(server, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


@contextmanager
def migrated(server: str) -> Iterator[str]:
    """The name of a migrated database, to be the template of others."""
    with created(server) as url:
        migrate(url)
        yield urlsplit(url).path.removeprefix("/")


def migrate(url: str) -> None:
    """Make the tables of a database."""
    subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "asyncpoll.settings"},
        check=True,
    )


def _execute(server: str, statement: str, *names: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
