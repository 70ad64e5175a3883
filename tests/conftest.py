"""What tests share: a running wake-up service, databases for child processes, and events as they happen."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from tasks_app import events
from tasks_app.wakeup.service import WakeupService, current_service, stop_service
from tests.support import aeventually

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Before the test database is dropped, whoever still listens to it has to leave."""
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@dataclass(slots=True)
class Events:
    """The events emitted while a test runs."""

    seen: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def of(self, name: str) -> list[dict[str, Any]]:
        """The facts of each event of that name, oldest first."""
        return [facts for event, facts in self.seen if event == name]


@pytest.fixture
def emitted() -> Iterator[Events]:
    """Every event emitted during the test."""
    recorded = Events()
    unsubscribe = events.subscribe(lambda event, facts: recorded.seen.append((event, dict(facts))))
    yield recorded
    unsubscribe()


@pytest.fixture
async def service(transactional_db: None) -> AsyncIterator[WakeupService]:
    """A wake-up service on the test's event loop that hears the database."""
    running = await current_service()
    await aeventually(lambda: running.hub.trust.active)
    yield running
    await stop_service()


@pytest.fixture(scope="session")
def migrated_template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a migrated database that others are copied from."""
    with _created_database("template") as url:
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "asyncpoll.settings"},
            check=True,
        )
        yield urlsplit(url).path.removeprefix("/")


@pytest.fixture
def database_url(migrated_template: str) -> Iterator[str]:
    """A migrated database of the test's own, for processes that the test starts."""
    with _created_database("copy", template=migrated_template) as url:
        yield url


class _created_database:
    def __init__(self, kind: str, template: str = "template1") -> None:
        self._name = f"asyncpoll_{kind}_{secrets.token_hex(4)}"
        self._template = template
        self._server = os.environ["DATABASE_URL"]

    def __enter__(self) -> str:
        self._execute("CREATE DATABASE {} TEMPLATE {}", self._name, self._template)
        return urlsplit(self._server)._replace(path=f"/{self._name}").geturl()

    def __exit__(self, *_: object) -> None:
        self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", self._name)

    def _execute(self, statement: str, *names: str) -> None:
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
