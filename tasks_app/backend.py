"""The backend for Django's Tasks framework: `django.tasks` of Django 6, or the `django-tasks` backport.

    TASKS = {
        "default": {
            "BACKEND": "tasks_app.backend.TasksBackend",
            "QUEUES": ["default", "reports"],  # [] allows every name
            "OPTIONS": {"owner": "", "max_attempts": 1, "timeout": 600},  # all optional
        }
    }

`manage.py runworker` runs what is enqueued, and a result's id can be waited for like every other task's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db import transaction
from django.utils import timezone

from tasks_app import conf
from tasks_app.compat import (
    BaseTaskBackend,
    InvalidTask,
    InvalidTaskBackend,
    Task,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    normalize_json,
    task_enqueued,
)
from tasks_app.errors import UnknownTask
from tasks_app.limits import MAX_NAME_LENGTH, SECONDS_RULE, are_seconds, new_task_id, parse_id
from tasks_app.owned import owned
from tasks_app.portable import PortableTask
from tasks_app.results import TrackedResult, find_task, tracked
from tasks_app.store import Call, NewTask
from tasks_app.store.announcer import announcer
from tasks_app.store.driver import run
from tasks_app.store.jsontext import to_json
from tasks_app.store.pool import loop_pool
from tasks_app.store.results import Recalled, enqueue_recalled, recall
from tasks_app.traces import carried


@dataclass(frozen=True, slots=True)
class Terms:
    """OPTIONS of a backend: what every task that is enqueued through it gets.

    A task of the framework is tried once unless `max_attempts` says otherwise: code written for it does not expect to
    run again. With one attempt, a worker that dies fails the task it was running.
    """

    owner: str = ""
    """Whom the tasks belong to: whose tokens may wait for them."""
    max_attempts: int = 1
    """Attempts until the task is FAILED; errors, time-outs and workers that died count."""
    timeout: float | None = None
    """Seconds per attempt; None: ASYNCPOLL['DEFAULT_TIMEOUT_SECONDS']."""


class TasksBackend(BaseTaskBackend):
    """Stores the framework's tasks as ours; supports all that it asks for.

    `enqueue` joins the transaction that is open on Django's connection, `aenqueue` commits on its own. Receivers of
    `task_started` run before the function, those of `task_finished` once its end is committed; what they raise is
    logged. A task that ended without its function (its worker died, it was cancelled before it started, its function
    is unknown) sends no `task_finished`.
    """

    task_class = PortableTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def validate_task(self, task: Task) -> None:
        """Raises InvalidTask for what the framework refuses, or what can't be stored."""
        super().validate_task(task)
        for broken, rule in _broken_rules(task):
            if broken:
                raise InvalidTask(f"Task {task.module_path}: {rule}")

    def enqueue(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TrackedResult:
        """Store a call, to be run once the caller's transaction commits.

        Raises InvalidTask, or TypeError and ValueError for arguments that are not JSON, with nothing stored.
        """
        new = self._prepare(task, args, kwargs)
        using = conf.current().DATABASE
        result = tracked(run(enqueue_recalled(new), using), task)
        task_enqueued.send(type(self), task_result=result)
        transaction.on_commit(lambda: announcer.announce_task(new), using=using)
        return result

    async def aenqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TrackedResult:
        """Store a call from async code, committed on its own. Raises like `enqueue`, and StoreUnavailable."""
        new = self._prepare(task, args, kwargs)
        result = tracked(await owned(_on_pool(enqueue_recalled(new))), task)
        await task_enqueued.asend(type(self), task_result=result)
        announcer.announce_task(new)
        return result

    def get_result(self, result_id: str) -> TrackedResult:
        """Any task of the framework, whichever backend of ours it was enqueued through.

        Raises TaskResultDoesNotExist for an unknown or malformed id, TaskResultMismatch when its function is gone.
        """
        return _result(result_id, run(recall(_uuid(result_id))))

    async def aget_result(self, result_id: str) -> TrackedResult:
        """`get_result` from async code."""
        return _result(result_id, await owned(_on_pool(recall(_uuid(result_id)))))

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """What keeps this entry of TASKS from working."""
        found: list[CheckMessage] = [*super().check(**kwargs)]
        if not apps.is_installed("tasks_app"):
            found.append(
                Error(
                    f"TASKS[{self.alias!r}] uses TasksBackend, and its app is not installed.",
                    hint="Add 'tasks_app' to INSTALLED_APPS.",
                    id="tasks_app.E020",
                )
            )
        try:
            parse_terms(self.alias, self.options)
        except InvalidTaskBackend as error:
            hint = "Correct the value in TASKS."
            found.append(Error(str(error), hint=hint, id="tasks_app.E021"))
        return found

    @cached_property
    def _terms(self) -> Terms:
        return parse_terms(self.alias, self.options)

    def _prepare(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewTask:
        self.validate_task(task)
        terms, settings = self._terms, conf.current()
        limit = settings.MAX_BODY_BYTES
        path = task.module_path
        task_id = new_task_id()
        return NewTask(
            id=task_id,
            name=path,
            queue=task.queue_name,
            owner=terms.owner,
            priority=int(task.priority),
            args=to_json(normalize_json(args), f"{path}: args", limit),
            kwargs=to_json(normalize_json(kwargs), f"{path}: kwargs", limit),
            max_attempts=terms.max_attempts,
            timeout_seconds=float(terms.timeout or settings.DEFAULT_TIMEOUT_SECONDS),
            run_at=_aware(task.run_after),
            trace_context=carried(task_id, path, task.queue_name),
            backend=self.alias,
        )


def parse_terms(alias: str, options: Mapping[str, Any]) -> Terms:
    """Validate OPTIONS. Raises InvalidTaskBackend naming value, rule and remedy."""
    where = f"TASKS[{alias!r}]['OPTIONS']"
    known = [field.name for field in fields(Terms)]
    for name in options:
        if name not in known:
            raise InvalidTaskBackend(
                f"{where}[{name!r}] is not an option; remove it or use one of {', '.join(known)}."
            )
    terms = Terms(**options)
    for name, holds, rule in _terms_rules(terms):
        if not holds:
            raise InvalidTaskBackend(f"{where}[{name!r}] is {getattr(terms, name)!r}; it {rule}.")
    return terms


def _terms_rules(terms: Terms) -> list[tuple[str, bool, str]]:
    owner, attempts, timeout = terms.owner, terms.max_attempts, terms.timeout
    return [
        (
            "owner",
            isinstance(owner, str) and len(owner) <= MAX_NAME_LENGTH and "\x00" not in owner,
            f"must be a text of at most {MAX_NAME_LENGTH} characters",
        ),
        (
            "max_attempts",
            type(attempts) is int and 1 <= attempts <= 100,
            "must be a whole number between 1 and 100",
        ),
        (
            "timeout",
            timeout is None or (type(timeout) in (int, float) and are_seconds(timeout)),
            SECONDS_RULE,
        ),
    ]


def _broken_rules(task: Task) -> list[tuple[bool, str]]:
    names = {
        "module path": task.module_path,
        "queue name": task.queue_name,
        "backend": task.backend,
    }
    return [
        (
            "." in task.func.__qualname__,
            "workers import it by its name; define the function at module level.",
        ),
        *(
            (
                len(value) > MAX_NAME_LENGTH,
                f"its {what} has {len(value)} characters; at most {MAX_NAME_LENGTH} fit.",
            )
            for what, value in names.items()
        ),
        (not task.queue_name, "its queue name is empty; name one, such as 'default'."),
        ("\x00" in "".join(names.values()), "names can't contain NUL."),
    ]


def _result(result_id: str, recalled: Recalled | None) -> TrackedResult:
    if recalled is None:
        raise TaskResultDoesNotExist(result_id)
    try:
        return tracked(recalled, find_task(recalled.name))
    except UnknownTask as error:
        raise TaskResultMismatch(f"Task result {result_id}: {error}") from error


def _uuid(result_id: object) -> UUID:
    try:
        return parse_id(str(result_id))
    except ValueError:
        raise TaskResultDoesNotExist(result_id) from None


async def _on_pool(call: Call[Any]) -> Any:
    return await (await loop_pool()).run(call)


def _aware(moment: datetime | None) -> datetime | None:
    """With USE_TZ off the framework takes naive times, which are in the project's zone."""
    if moment is None or timezone.is_aware(moment):
        return moment
    return timezone.make_aware(moment)
