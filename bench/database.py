"""Databases to throw away: one for each server under test, copies of one that was migrated."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from asyncpoll.embedded import temporary
from bench.child import ROOT
from bench.errors import BenchError
from bench.project import environment, manage

_NOTHING = "template1"


@dataclass(frozen=True, slots=True)
class Databases:
    """A Postgres server, and the name of a migrated database on it. `note` says what to know about the server."""

    server_url: str
    template: str
    note: str

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The URL of a migrated database of one's own."""
        with _created(self.server_url, self.template) as url:
            yield url

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The URL of a database of one's own with nothing in it."""
        with _created(self.server_url, _NOTHING) as url:
            yield url


@contextmanager
def databases(**settings: str) -> Iterator[Databases]:
    """Databases on the server that DATABASE_URL names, or on one that is started for the purpose, with `settings`."""
    given = os.environ.get("DATABASE_URL", "")
    if given:
        yield from _migrated(given, "from DATABASE_URL, not pinned")
        return
    with temporary(**settings) as url:
        yield from _migrated(url, "started for this run, without fsync or synchronous commits")


def _migrated(server_url: str, note: str) -> Iterator[Databases]:
    with _created(server_url, _NOTHING) as url:
        done = subprocess.run(
            manage("migrate", "--verbosity", "0"),
            cwd=ROOT,
            env={**os.environ, **environment(url)},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise BenchError(f"The benchmark's database could not be migrated:\n{done.stderr}")
        yield Databases(server_url, urlsplit(url).path.removeprefix("/"), note)


@contextmanager
def _created(server_url: str, template: str) -> Iterator[str]:
    name = f"asyncpoll_bench_{secrets.token_hex(4)}"
    _execute(server_url, "CREATE DATABASE {} TEMPLATE {}", name, template)
    try:
        yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
    finally:
        _execute(server_url, "DROP DATABASE IF EXISTS {} WITH (FORCE)", name)


def _execute(url: str, statement: str, *names: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
