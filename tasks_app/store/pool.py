"""The process's async connections: every statement outside Django's own connection goes through here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, TypeVar, cast

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from tasks_app.store import dsn
from tasks_app.store.call import Call
from tasks_app.store.refusals import MISSING, explain
from tasks_app.store.sessions import backend, favour_indexes
from tasks_app.store.silence import Watch

T = TypeVar("T")

# A caller that found no connection for this long is told that the database is away.
_CHECKOUT_SECONDS = 3.0


class Transaction:
    """The calls that belong together."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def run(self, call: Call[T]) -> T:
        """Execute `call` as part of the transaction."""
        with Watch(self._connection):
            return await execute(self._connection, call)


class Pool:
    """A few autocommit connections on one event loop."""

    def __init__(self, application: str, size: int = 4) -> None:
        self._pool = _MortalPool(
            connection_class=Connection,
            kwargs={**dsn.parameters(application), "autocommit": True},
            min_size=1,
            max_size=size,
            timeout=_CHECKOUT_SECONDS,
            reconnect_timeout=5.0,
            configure=_made_ready,
            name=f"asyncpoll-{application}",
            open=False,
        )

    async def open(self) -> None:
        """Start connecting in the background; a database that is away is met by the first `run`."""
        await self._pool.open(wait=False)

    async def close(self) -> None:
        """Close every connection, within two seconds."""
        await self._pool.close(timeout=2.0)

    async def run(self, call: Call[T]) -> T:
        """Execute `call` and commit it. Raises StoreUnavailable when the database is away or goes away meanwhile."""
        async with self._connected() as connection:
            with Watch(connection):
                return await execute(connection, call)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Several calls that are committed together, or not at all. Raises like `run`."""
        async with self._connected() as connection, connection.transaction():
            yield Transaction(connection)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[AsyncConnection]:
        try:
            async with self._pool.connection() as connection:
                yield connection
        except (psycopg.Error, PoolTimeout) as error:
            reason = explain(error)
            if reason is None:
                raise
            raise reason from error

    def abandon(self) -> None:
        """Drop the sockets of a pool whose event loop is closed, where nothing can be awaited any more."""
        for connection in self._pool._pool:
            connection.pgconn.finish()

    @property
    def stats(self) -> dict[str, int]:
        """psycopg_pool's own counters."""
        return self._pool.get_stats()


_pools: dict[asyncio.AbstractEventLoop, Pool] = {}


async def loop_pool() -> Pool:
    """The pool of the running event loop, opened at first use and forgotten with its loop."""
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is None:
        for closed in [known for known in _pools if known.is_closed()]:
            _pools.pop(closed).abandon()
        pool = _pools[loop] = Pool("app")
        await pool.open()
    return pool


async def close_loop_pool() -> None:
    """Close the running loop's pool, if it has one."""
    pool = _pools.pop(asyncio.get_running_loop(), None)
    if pool is not None:
        await pool.close()


async def execute(connection: AsyncConnection, call: Call[T]) -> T:
    """Run `call` on an async connection of the caller's. Raises psycopg.Error, and Unmigrated."""
    cursor = connection.reused if isinstance(connection, Connection) else AsyncRawCursor(connection)
    sql, values = call.positional
    try:
        await cursor.execute(sql, values, prepare=call.prepare, binary=True)
    except MISSING as error:
        raise explain(error) or error from error
    # Not `description`, which makes an object for each column.
    has_rows = cursor.pgresult is not None and cursor.pgresult.nfields > 0
    return call.shape(await cursor.fetchall() if has_rows else [])


class Connection(AsyncConnection):
    """A connection of the pool, which one call at a time has to itself."""

    @cached_property
    def reused(self) -> AsyncRawCursor:
        """One cursor for all its calls: making another is a quarter of what a small read costs."""
        return AsyncRawCursor(self)


class _MortalPool(AsyncConnectionPool):
    """Ends with its event loop. psycopg_pool's own workers take a cancellation that arrives while they connect for an
    error to be tried again, and asyncio.run(), which cancels them, waits for them for ever."""

    @classmethod
    async def worker(cls, q: Any) -> None:
        """Run maintenance tasks from `q` until it is stopped or cancelled."""
        await super().worker(cast(Any, _MortalQueue(q)))


class _MortalQueue:
    def __init__(self, queue: asyncio.Queue[Any]) -> None:
        self._queue = queue

    async def get(self) -> Any:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError
        return await self._queue.get()


async def _made_ready(connection: AsyncConnection) -> None:
    with Watch(connection):
        await _prepare_where_safe(connection)


async def _prepare_where_safe(connection: AsyncConnection) -> None:
    """Prepare statements only where no pooler moves us between backends: there, a prepared one may be elsewhere."""
    direct = await execute(connection, backend()) == connection.info.backend_pid
    connection.prepare_threshold = 2 if direct else None
    if direct:
        # A plan made while the table was small is kept while it grows, and every statement of the store has its index.
        # What reads a table of a few rows all the same is thought dear by that, and would be compiled for 0.2 s each time.
        await execute(connection, favour_indexes())
