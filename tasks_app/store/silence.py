"""A server that acknowledges what it is sent and never answers, which no keepalive and no time limit of TCP notices."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import AsyncConnection

from tasks_app.events import emit
from tasks_app.store import dsn
from tasks_app.store.call import Call

# Statements of ours take milliseconds; those that delete or look at many rows, some seconds.
SILENT_SECONDS = 10.0
# However busy the server says it is.
_LONGEST_SECONDS = 60.0
# Through a pooler nobody here knows the process to ask about. Time for whoever holds a lock, and no longer than a lease
# and a rescue take anyway: what is cut is tried again, as after any outage.
_LONGEST_POOLED_SECONDS = 20.0
_SECOND_OPINION_SECONDS = 3.0


def cut(connection: psycopg.Connection[Any] | AsyncConnection[Any]) -> None:
    """End the connection under its owner, who gets an OperationalError. Works on a duplicate of the descriptor."""
    with suppress(OSError, psycopg.Error):
        duplicate = socket.socket(fileno=os.dup(connection.pgconn.socket))
        try:
            duplicate.shutdown(socket.SHUT_RDWR)
        finally:
            duplicate.close()


class Watch:
    """Around one statement: cuts its connection once the server is silent, and is not at work on it."""

    __slots__ = ("_asking", "_connection", "_silence", "_timer")

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection
        self._asking: asyncio.Task[None] | None = None
        self._silence = 0.0

    def __enter__(self) -> None:
        self._wait()

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(SILENT_SECONDS, self._doubt)

    def _doubt(self) -> None:
        self._silence += SILENT_SECONDS
        self._asking = asyncio.create_task(self._ask(), name="asyncpoll:silence")

    async def _ask(self) -> None:
        if self._may_wait and await _is_at_work(self._connection):
            self._wait()
            return
        emit("connection.silent", silence_seconds=self._silence)
        cut(self._connection)

    @property
    def _may_wait(self) -> bool:
        return self._silence < (
            _LONGEST_POOLED_SECONDS if _is_pooled(self._connection) else _LONGEST_SECONDS
        )


def _is_pooled(connection: AsyncConnection[Any]) -> bool:
    return connection.prepare_threshold is None


async def _is_at_work(connection: AsyncConnection[Any]) -> bool:
    """What the server says on another connection; False where it says nothing there either."""
    asking = asyncio.create_task(_second_opinion(connection))
    try:
        done, _ = await asyncio.wait({asking}, timeout=_SECOND_OPINION_SECONDS)
        return bool(done) and asking.exception() is None and asking.result()
    finally:
        # Not awaited: on a silent server, a statement that is cancelled takes its time.
        asking.cancel()


async def _second_opinion(connection: AsyncConnection[Any]) -> bool:
    call = Call("at_work", {"pid": connection.info.backend_pid}, lambda rows: bool(rows[0][0]))
    async with await AsyncConnection.connect(
        **dsn.parameters("second opinion"), autocommit=True
    ) as other:
        cursor = await other.execute(call.sql_bytes, call.params, prepare=False)
        # Of a pooler only that it answers is known.
        return call.shape(await cursor.fetchall()) or _is_pooled(connection)
