"""A database server that tests may crash, and tasks in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.squares import Squares
from tests.acceptance.workers import Queue
from tests.databases import created, migrated
from tests.postgres import Postgres, own_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A server beside the one that other tests share; it may be crashed, and runs again afterwards."""
    with own_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def fragile_template(postgres: Postgres) -> Iterator[str]:
    """The name of a migrated database there."""
    with migrated(postgres.url) as name:
        yield name


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    """The tasks of a database of the test's own."""
    with Queue(database_url) as queue:
        yield queue


@pytest.fixture
def squares(postgres: Postgres, fragile_template: str) -> Iterator[Squares]:
    """Tasks in a database of that server."""
    with created(postgres.url, fragile_template) as url, Queue(url) as queue:
        yield Squares(queue)
