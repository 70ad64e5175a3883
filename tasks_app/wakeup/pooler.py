"""Is a transaction-pooling proxy in the way? LISTEN through one is silently deaf."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection, OperationalError

from tasks_app.errors import PoolerInTheWay
from tasks_app.store import backend, dsn
from tasks_app.store.pool import execute

_REMEDY = (
    "LISTEN needs a connection that keeps its server session, but this one goes through a transaction-pooling proxy "
    "(pgbouncer or alike), which would be silently deaf; set LISTEN_DATABASE_URL to the database server itself."
)


async def check_listen_connection(application: str) -> None:
    """Raise PoolerInTheWay where LISTEN would be deaf. A database that is away is not waited for.

    For the start of a process: later on, a listener asks with each connection.
    """
    keywords = dsn.listen_parameters(application)
    try:
        async with await AsyncConnection.connect(
            **keywords, autocommit=True, prepare_threshold=None
        ) as connection:
            await refuse_transaction_pooler(connection, keywords)
    except OperationalError:
        return


async def refuse_transaction_pooler(connection: AsyncConnection, keywords: dict[str, Any]) -> None:
    """Raise PoolerInTheWay when `connection` can be moved between server sessions.

    An idle pooler answers a self-probe, so the check compares server processes: the one that greeted us with the one
    that answers, and then, where they differ, the one that a second connection gets while ours rests.
    """
    if await execute(connection, backend()) == connection.info.backend_pid:
        return
    async with await AsyncConnection.connect(**keywords, prepare_threshold=None) as second:
        mine = await execute(connection, backend())
        async with second.transaction():
            theirs = await execute(second, backend())
            moved = await execute(connection, backend()) != mine
    if moved or theirs == mine:
        raise PoolerInTheWay(_REMEDY)
