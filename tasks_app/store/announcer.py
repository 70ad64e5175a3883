"""Tells workers of new work after the caller's commit, gathered, on a connection of its own.

NOTIFY takes a cluster-wide lock at commit, so it must not sit in a caller's transaction. What gets lost with a crash in
between is found by the workers' poll interval.
"""

from __future__ import annotations

import atexit
import os
import threading

import psycopg

from tasks_app.events import emit
from tasks_app.store import dsn
from tasks_app.store.verbs import notify

# At exit, a script that enqueued and ends at once waits this long for its announcement to leave.
_EXIT_SECONDS = 1.0
# The connection is given back after this long without news.
_IDLE_SECONDS = 60.0


class Announcer:
    """A thread that sleeps until queues are announced. Starts with the first announcement, again after a fork."""

    def __init__(self) -> None:
        self._queues: set[str] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._sending = False

    def announce(self, queue: str) -> None:
        """Have the workers of `queue` told soon. Never blocks, never raises."""
        with self._changed:
            self._queues.add(queue)
            if self._thread is None or not self._thread.is_alive() or self._pid != os.getpid():
                self._pid = os.getpid()
                self._thread = threading.Thread(
                    target=self._run, name="asyncpoll-announcer", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def flush(self, within: float = _EXIT_SECONDS) -> None:
        """Wait until everything announced so far was sent, at most `within` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queues and not self._sending, within)

    def _run(self) -> None:
        connection: psycopg.Connection | None = None
        while queues := self._next():
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(
                        **dsn.parameters("announcer"), autocommit=True, prepare_threshold=None
                    )
                call = notify(sorted(queues))
                connection.execute(call.sql_bytes, call.params)
            except psycopg.Error as error:
                # Not tried again: the workers' own poll is the second try.
                connection = None
                emit("announcer.failed", queues=sorted(queues), error=error)
        if connection is not None:
            connection.close()

    def _next(self) -> set[str]:
        with self._changed:
            self._sending = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._queues, _IDLE_SECONDS)
            queues, self._queues = self._queues, set()
            self._sending = bool(queues)
            if not queues:
                self._thread = None
            return queues


announcer = Announcer()
atexit.register(announcer.flush)
