"""The heartbeat: extends leases from a thread and a connection of its own, so that a task which blocks the event loop
keeps its lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

import psycopg

from tasks_app import conf
from tasks_app.events import emit
from tasks_app.loops import pause_after
from tasks_app.store import Call, WorkerFacts, dsn, give_back, heartbeat, stop_worker
from tasks_app.store.refusals import explain
from tasks_app.store.silence import cut
from tasks_app.worker.attempt import Attempt
from tasks_app.worker.held import Held

T = TypeVar("T")
# Beats pass over rows that somebody has locked. Twice in a lease of 15 s that is given every 5 s.
_ANSWER_SECONDS = 3.0
Answer = Mapping[tuple[UUID, int], bool]


class Heartbeat:
    """Beats at once, then every HEARTBEAT_SECONDS. `heard(sent, answer)` is called in its thread."""

    def __init__(
        self,
        worker: WorkerFacts,
        held: Held,
        heard: Callable[[Sequence[Attempt], Answer], Any],
    ) -> None:
        self._worker = worker
        self._held = held
        self._heard = heard
        self._stopping = threading.Event()
        self._give_back_but: Sequence[Attempt] | None = None
        self._connection: psycopg.Connection | None = None
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="asyncpoll-heartbeat", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, within: float, give_back_but: Sequence[Attempt] | None = None) -> None:
        """Record that the worker ended, and close the connection; blocks at most `within` seconds. `give_back_but`: let
        go of all that the worker holds but these, first."""
        self._give_back_but = give_back_but
        self._stopping.set()
        self._thread.join(within)

    def _run(self) -> None:
        pause = 0.0
        while not self._stopping.wait(pause):
            pause = self._survive_beat()
        with suppress(Exception):
            if self._give_back_but is not None:
                kept = [(attempt.id, attempt.attempt) for attempt in self._give_back_but]
                self._execute(give_back(self._worker.id, kept))
            self._execute(stop_worker(self._worker.id))
        self._disconnect()

    def _survive_beat(self) -> float:
        """One beat; gives the seconds until the next. A failure is tried again sooner, on a new connection."""
        usual = conf.current().HEARTBEAT_SECONDS
        try:
            self._beat()
        except Exception as error:
            # Whatever it was: without this thread the worker would lose every task that it holds.
            self._disconnect()
            self._failures += 1
            pause = pause_after(self._failures, usual)
            emit(
                "heartbeat.failed",
                error=explain(error) or error,
                failures=self._failures,
                pause=pause,
            )
            return pause
        self._failures = 0
        return usual

    def _beat(self) -> None:
        lease = conf.current().LEASE_SECONDS
        sent = self._held.all()
        lease_until = time.monotonic() + lease
        pairs = [(attempt.id, attempt.attempt) for attempt in sent]
        answer = self._execute(heartbeat(self._worker, pairs, lease))
        for attempt in sent:
            if (attempt.id, attempt.attempt) in answer:
                attempt.lease_until = lease_until
        self._heard(sent, answer)

    def _execute(self, call: Call[T]) -> T:
        if self._connection is None:
            self._connection = psycopg.connect(
                **dsn.parameters("heartbeat"), autocommit=True, prepare_threshold=None
            )
        # The thread may wait for ever for a server that acknowledges and does not answer, and with it every lease.
        watchdog = threading.Timer(_ANSWER_SECONDS, cut, [self._connection])
        watchdog.daemon = True
        watchdog.start()
        try:
            with self._connection.cursor(binary=True) as cursor:
                cursor.execute(call.sql_bytes, call.params)
                rows = cursor.fetchall() if cursor.description else []
        finally:
            watchdog.cancel()
        return call.shape(rows)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()
