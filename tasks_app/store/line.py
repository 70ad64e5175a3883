"""One connection of a process, for synchronous code whose statements must not join anybody's transaction."""

from __future__ import annotations

import os
import threading
from typing import TypeVar

import psycopg

from tasks_app.store import dsn
from tasks_app.store.call import Call

T = TypeVar("T")


class Line:
    """An autocommit connection that is made when it is needed, and made again when it broke or the process forked."""

    def __init__(self, application: str) -> None:
        self._application = application
        self._mutex = threading.Lock()
        self._connections: dict[int, psycopg.Connection] = {}
        os.register_at_fork(after_in_child=self._forked)

    def run(self, call: Call[T]) -> T:
        """Execute `call` and commit it. Raises psycopg.Error."""
        with self._mutex:
            try:
                return self._execute(call)
            except psycopg.OperationalError:
                # It may have died while nobody used it; a fresh one tells whether the database is away.
                self._disconnect()
                return self._execute(call)

    def close(self) -> None:
        """Give the connection back; the next call makes another."""
        with self._mutex:
            self._disconnect()

    def _execute(self, call: Call[T]) -> T:
        connection = self._connections.get(os.getpid())
        if connection is None:
            connection = self._connections[os.getpid()] = psycopg.connect(
                **dsn.parameters(self._application), autocommit=True, prepare_threshold=None
            )
        with connection.cursor(binary=True) as cursor:
            cursor.execute(call.sql.encode(), call.params)
            rows = cursor.fetchall() if cursor.description else []
        return call.shape(rows)

    def _disconnect(self) -> None:
        connection = self._connections.pop(os.getpid(), None)
        if connection is not None:
            connection.close()

    def _forked(self) -> None:
        # The parent's connection stays in the table: closing it here would end it for the parent, too.
        self._mutex = threading.Lock()
