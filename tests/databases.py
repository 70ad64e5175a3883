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
from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import sql

# Made by migrations, and the same for every test.
_LASTING = {"auth_permission", "django_content_type"}
# Above this, rows are deleted more slowly than a table is cut off.
_LARGE_BYTES = 256 * 1024
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


def empty(connection: BaseDatabaseWrapper) -> None:
    """Take out what a test has committed, as Django's flush does.

    That cuts off every table, which gives new files to it and to its indexes, and takes thirty times as long as deleting
    a few rows; and then it makes anew what is the same each time.
    """
    names = sorted(set(connection.introspection.django_table_names(only_existing=True)) - _LASTING)
    tables = sql.SQL(", ").join(map(sql.Identifier, names))
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        # Whoever is still writing ends first.
        cursor.execute(sql.SQL("LOCK {} IN SHARE ROW EXCLUSIVE MODE").format(tables))
        cursor.execute(
            "SELECT max(pg_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name", [names]
        )
        ((largest,),) = cursor.fetchall()
        if largest > _LARGE_BYTES:
            cursor.execute(sql.SQL("TRUNCATE {}").format(tables))
            return
        deletes = [sql.SQL("DELETE FROM {}").format(sql.Identifier(name)) for name in names]
        cursor.execute(sql.SQL("; ").join(deletes))


def _execute(server: str, statement: str, *names: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
