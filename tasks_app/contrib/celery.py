"""Mirrors the tasks of a Celery app into the registry, so that a client can wait for what Celery runs.

    # proj/celery.py, which proj/__init__.py imports
    app = Celery("proj")
    mirror(app)

Celery stays as it is: its signals tell when a task was sent, begun, retried and over. A task's id is Celery's own
(`result.id`), or `registry_id(result.id)` where that is no UUID. This module imports no models, as Celery's app is made
before Django's apps are loaded. What its receivers raise is logged by Celery, and never ends a task.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Mapping
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import psycopg
from celery import Celery, signals, states

from asyncpoll.contract import Status
from tasks_app import queues, store
from tasks_app.contrib import celery_outcomes as outcomes
from tasks_app.loops import pause_after
from tasks_app.store import OUTSIDE_WORKER, Change, NewTask
from tasks_app.store.jsontext import clean_text, to_json
from tasks_app.store.line import Line

Owner = str | Callable[[Mapping[str, Any]], str]

# Celery knows no limit by default; a worker that died without a word is taken for dead after this long.
LONGEST_SECONDS = 86_400.0
# Celery's own word that a time limit is exceeded shall come before ours.
_LATER_SECONDS = 60.0
_REPR_CHARACTERS = 2_000
# A row that somebody has locked is tried again at least this often.
_LONGEST_PAUSE_SECONDS = 1.0


def mirror(
    app: Celery,
    *,
    queue: str = "celery",
    owner: Owner = "",
    only: Container[str] | None = None,
    longest_seconds: float = LONGEST_SECONDS,
) -> Mirror:
    """From now on show the tasks of `app` in the registry, on `queue`, which `runworker` leaves alone.

    `owner` says whose they are: a name, or a function of the message's headers. `only` are the names of the tasks to
    show; None: all but Celery's own. A task without a `time_limit` that is silent for `longest_seconds` has failed.
    """
    queues.reserve(queue, "Celery")
    made = Mirror(app, queue, owner, only, longest_seconds)
    made.connect()
    return made


def registry_id(celery_id: str) -> UUID:
    """The id in the registry of the task that Celery calls `celery_id`."""
    try:
        return UUID(celery_id)
    except ValueError:
        return uuid5(NAMESPACE_URL, f"celery:{celery_id}")


class Mirror:
    """One app's receivers of Celery's signals."""

    def __init__(
        self,
        app: Celery,
        queue: str,
        owner: Owner,
        only: Container[str] | None,
        longest_seconds: float,
    ) -> None:
        self._app = app
        self._queue = queue
        self._owner = owner
        self._only = only
        self._longest_seconds = longest_seconds
        self._line = Line("celery mirror")
        # The attempts that run in this process, by Celery's id: what is said here is about them, and no later one.
        self._attempts: dict[str, int] = {}
        self._receivers = (
            (signals.after_task_publish, self._on_sent),
            (signals.task_prerun, self._on_begun),
            (signals.task_postrun, self._on_over),
            (signals.task_failure, self._on_failed),
            (signals.task_retry, self._on_retried),
            (signals.task_revoked, self._on_revoked),
        )

    def connect(self) -> None:
        """Begin to mirror."""
        for signal, receiver in self._receivers:
            signal.connect(receiver, weak=False)

    def disconnect(self) -> None:
        """Mirror nothing more."""
        for signal, receiver in self._receivers:
            signal.disconnect(receiver)
        self._line.close()

    # After sending rather than before: a message that could not be sent leaves no task behind that nobody will run.
    def _on_sent(self, sender: str, headers: Mapping[str, Any], **_: Any) -> None:
        # What a retry sends is the same task once more.
        if self._shows(sender) and not headers.get("retries"):
            self._store(self._new_task(headers["id"], sender, headers, headers))

    def _on_begun(self, sender: Any, task_id: str, **_: Any) -> None:
        if not self._runs(sender):
            return
        attempt = self._line.run(store.begin(registry_id(task_id)))
        if attempt is None:
            # Sent by somebody without a mirror, or run faster than its sender could tell.
            request = sender.request
            self._store(self._new_task(task_id, sender.name, request, request.headers or {}))
            attempt = self._line.run(store.begin(registry_id(task_id)))
        if attempt is not None:
            self._attempts[task_id] = attempt

    def _on_over(self, sender: Any, task_id: str, retval: Any, state: str, **_: Any) -> None:
        if not self._runs(sender):
            return
        if state == states.SUCCESS:
            self._end(task_id, outcomes.success(retval))
        elif state == states.IGNORED:
            self._end(task_id, outcomes.ignored())
        self._attempts.pop(task_id, None)

    def _on_failed(self, sender: Any, task_id: str, exception: BaseException, **_: Any) -> None:
        if self._runs(sender):
            self._end(task_id, outcomes.failure(exception))

    def _on_retried(self, sender: Any, request: Any, reason: Any, **_: Any) -> None:
        if self._runs(sender):
            self._end(request.id, outcomes.retry(reason))

    def _on_revoked(self, sender: Any, request: Any, **_: Any) -> None:
        if not self._runs(sender):
            return
        self._store(self._new_task(request.id, sender.name, request, request.headers or {}))
        asked = self._line.run(store.cancel(registry_id(request.id)))
        if asked is None or asked.status is Status.RUNNING:
            self._end(request.id, outcomes.revoked())

    def _store(self, new: NewTask) -> None:
        """Unless it is there: sender and worker both do this, whoever is first."""
        try:
            self._line.run(store.enqueue([new]))
        except psycopg.errors.UniqueViolation:
            return

    def _end(self, celery_id: str, outcome: outcomes.Outcome) -> None:
        """Commit how an attempt ended; one that was not begun in this process is the one that runs now."""
        status, facts = outcome
        identity, attempt = registry_id(celery_id), self._attempts.get(celery_id)
        if attempt is None:
            row = self._line.run(store.read([identity])).get(identity)
            attempt = 0 if row is None else row.attempt
        self._commit(Change(identity, attempt, status, **facts))

    def _commit(self, change: Change) -> None:
        """Unless it is not the attempt's to say any more; where somebody has its row locked, after that."""
        failures = 0
        while not self._line.run(store.commit(OUTSIDE_WORKER, [change])):
            if not self._line.run(store.holds(OUTSIDE_WORKER, [change])):
                return
            failures += 1
            time.sleep(pause_after(failures, _LONGEST_PAUSE_SECONDS))

    def _new_task(
        self, celery_id: str, name: str, facts: Mapping[str, Any], headers: Mapping[str, Any]
    ) -> NewTask:
        """The row of a task. `facts` are the fields of its message, or of the worker's request."""
        # Celery's own short forms, in which a project may have hidden what is nobody's business.
        shown = {key: str(facts.get(key) or "") for key in ("argsrepr", "kwargsrepr")}
        cut = {key: clean_text(text)[:_REPR_CHARACTERS] for key, text in shown.items()}
        return NewTask(
            id=registry_id(celery_id),
            name=clean_text(name)[: outcomes.NAME_CHARACTERS],
            queue=self._queue,
            owner=self._owner(headers) if callable(self._owner) else self._owner,
            priority=0,
            args="[]",
            kwargs=to_json(cut, "kwargs"),
            max_attempts=1,  # Celery decides on retries; an attempt that went silent was the last
            timeout_seconds=self._limit_of(name, facts) + _LATER_SECONDS,
            run_at=outcomes.moment_of(facts.get("eta")),
        )

    def _limit_of(self, name: str, facts: Mapping[str, Any]) -> float:
        asked = (facts.get("timelimit") or [None])[0]
        declared = getattr(self._app.tasks.get(name), "time_limit", None)
        return float(asked or declared or self._app.conf.task_time_limit or self._longest_seconds)

    def _shows(self, name: str) -> bool:
        return not name.startswith("celery.") if self._only is None else name in self._only

    def _runs(self, task: Any) -> bool:
        return task.app is self._app and self._shows(task.name)
