"""Tells workers of new work after the caller's commit, gathered, on a connection of its own.

NOTIFY takes a cluster-wide lock at commit, so it must not sit in a caller's transaction. What gets lost with a crash in
between is found by the workers' poll interval.
"""

from __future__ import annotations

import atexit
import os
import threading
from datetime import datetime

import psycopg

from tasks_app.events import emit
from tasks_app.store import dsn
from tasks_app.store.rows import NewTask
from tasks_app.store.verbs import notify

# At exit, a script that enqueued and ends at once waits this long for its announcement to leave.
_EXIT_SECONDS = 1.0
# The connection is given back after this long without news.
_IDLE_SECONDS = 60.0


class Announcer:
    """A thread that sleeps until queues are announced. Starts with the first announcement, again after a fork."""

    def __init__(self) -> None:
        self._queues: set[str] = set()
        self._due: datetime | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._sending = False

    def announce_task(self, task: NewTask) -> None:
        """Have told soon of a task that is committed, if it is not due for a while, whoever promotes."""
        with self._changed:
            if task.is_due:
                self._queues.add(task.queue)
            if task.run_at is not None:
                self._due = task.run_at if self._due is None else min(self._due, task.run_at)
            self._begin()

    def announce(self, queue: str) -> None:
        """Have the workers of `queue` told soon. Never blocks, never raises."""
        with self._changed:
            self._queues.add(queue)
            self._begin()

    def flush(self, within: float = _EXIT_SECONDS) -> None:
        """Wait until everything announced so far was sent, at most `within` seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._has_news and not self._sending, within)

    @property
    def _has_news(self) -> bool:
        return bool(self._queues) or self._due is not None

    def _begin(self) -> None:
        if self._thread is None or not self._thread.is_alive() or self._pid != os.getpid():
            self._pid = os.getpid()
            self._thread = threading.Thread(
                target=self._run, name="asyncpoll-announcer", daemon=True
            )
            self._thread.start()
        self._changed.notify_all()

    def _run(self) -> None:
        connection: psycopg.Connection | None = None
        while (news := self._next()) is not None:
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(
                        **dsn.parameters("announcer"), autocommit=True, prepare_threshold=None
                    )
                call = notify(*news)
                connection.execute(call.sql_bytes, call.params)
            except psycopg.Error as error:
                # Not tried again: the poll interval is the second try.
                connection = None
                emit("announcer.failed", queues=news[0], error=error)
        if connection is not None:
            connection.close()

    def _next(self) -> tuple[list[str], datetime | None] | None:
        """What gathered: queues, and when the soonest task is due; None after a while without any."""
        with self._changed:
            self._sending = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._has_news, _IDLE_SECONDS)
            self._sending = self._has_news
            if not self._has_news:
                self._thread = None
                return None
            news = sorted(self._queues), self._due
            self._queues, self._due = set(), None
            return news


announcer = Announcer()
atexit.register(announcer.flush)
