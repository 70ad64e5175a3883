"""Has the database had the migrations that this code needs? Without them every statement would fail by itself."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

import psycopg
from django.db.migrations.loader import MigrationLoader
from psycopg import errors

from tasks_app import conf
from tasks_app.errors import NotMigrated, Unmigrated
from tasks_app.store import dsn
from tasks_app.store.call import Call
from tasks_app.store.pool import Pool
from tasks_app.store.refusals import remedy


def refuse_unmigrated(application: str) -> None:
    """Raise NotMigrated where migrations are missing. A database that is away is not waited for."""
    try:
        with psycopg.connect(**dsn.parameters(application), prepare_threshold=None) as connection:
            call = _read_migrations()
            applied = call.shape(connection.execute(call.sql_bytes, call.params).fetchall())
    except psycopg.OperationalError:
        return
    except errors.UndefinedTable:
        applied = frozenset()
    except errors.InsufficientPrivilege:
        return
    _compare(applied)


async def arefuse_unmigrated(pool: Pool) -> None:
    """The same for a process that serves. Raises StoreUnavailable as well."""
    try:
        applied = await pool.run(_read_migrations())
    except Unmigrated:
        applied = frozenset()
    except errors.InsufficientPrivilege:
        return
    _compare(applied)


def _read_migrations() -> Call[frozenset[str]]:
    return Call("read_migrations", {}, lambda rows: frozenset(row[0] for row in rows))


def _compare(applied: frozenset[str]) -> None:
    missing = sorted(_needed() - applied)
    if missing:
        raise NotMigrated(
            f"The database {conf.current().DATABASE!r} lacks {len(missing)} of the migrations of tasks_app, from "
            f"{missing[0]} on; {remedy()}."
        )


@cache
def _needed() -> frozenset[str]:
    """The migrations in the code; none where MIGRATION_MODULES turns them off."""
    module, _ = MigrationLoader.migrations_module("tasks_app")
    if module is None:
        return frozenset()
    found = pkgutil.iter_modules(import_module(module).__path__)
    return frozenset(each.name for each in found if not each.ispkg)
