"""A database that answers and will not: for whoever asks it is away, until somebody mends it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tasks_app.errors import StoreUnavailable
from tasks_app.models.task import new_task_id
from tasks_app.store import NewTask, dsn, enqueue
from tasks_app.store.pool import Pool

pytestmark = pytest.mark.django_db(transaction=True)

NEW = NewTask(new_task_id(), "sample.add", "default", "", 0, "[]", "{}", 1, 60.0)


@pytest.fixture
def role() -> Iterator[str]:
    """The role that the tests' processes have, as it was."""
    with psycopg.connect(**dsn.parameters("test"), autocommit=True) as connection:
        (name,) = connection.execute("SELECT current_user").fetchone() or ()
        (database,) = connection.execute("SELECT current_database()").fetchone() or ()
        setting = f'ALTER ROLE "{name}" IN DATABASE "{database}"'
        yield setting
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"{setting} RESET ALL")


async def test_a_database_that_became_a_standby_is_away(role) -> None:
    """Requests get 503, and workers keep what they have to commit."""
    with psycopg.connect(**dsn.parameters("test"), autocommit=True) as connection:
        connection.execute(f"{role} SET default_transaction_read_only = on")
    pool = Pool("standby", 1)
    await pool.open()
    try:
        with pytest.raises(
            StoreUnavailable, match=r"ReadOnlySqlTransaction.*on a server that is no standby"
        ):
            await pool.run(enqueue([NEW]))
    finally:
        await pool.close()


async def test_a_role_that_may_not_write_is_told_what_it_needs() -> None:
    """Instead of a fault of ours with a traceback."""
    pool = Pool("reader", 1)
    await pool.open()
    try:
        with pytest.raises(
            StoreUnavailable, match=r"InsufficientPrivilege.*its account needs to read and write"
        ):
            async with pool.transaction() as transaction:
                await transaction._connection.execute("SET LOCAL ROLE pg_monitor")
                await transaction.run(enqueue([NEW]))
    finally:
        await pool.close()
