"""What tests share: a running wake-up service, databases for child processes, and events as they happen."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection, connections
from django.test import TransactionTestCase

from tasks_app import events
from tasks_app.wakeup.service import WakeupService, current_service, stop_service
from tests.databases import created, empty, migrated
from tests.support import aeventually

# Whoever runs the tests in the background may have Ctrl-C ignored, and children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Before the test database is dropped, whoever still listens to it has to leave."""
    yield
    with django_db_blocker.unblock(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture(autouse=True, scope="session")
def quick_flush() -> Iterator[None]:
    """A thousand tests commit what they do; Django would take a minute of two cores to take it out again."""

    def take_out(case: TransactionTestCase) -> None:
        for alias in case._databases_names(include_mirrors=False):
            empty(connections[alias])

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(TransactionTestCase, "_fixture_teardown", take_out)
        yield


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
def migrated_template() -> Iterator[str]:
    """The name of a migrated database that others are copied from."""
    with migrated(os.environ["DATABASE_URL"]) as template:
        yield template


@pytest.fixture
def database_url(migrated_template: str) -> Iterator[str]:
    """A migrated database of the test's own, for processes that the test starts."""
    with created(os.environ["DATABASE_URL"], migrated_template) as url:
        yield url
