"""What a declared task is: a function with a name, a queue and limits, whose call can be stored."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, Generic, ParamSpec, TypeVar
from uuid import UUID

from django.db import transaction

from tasks_app import conf
from tasks_app.errors import InvalidTask
from tasks_app.limits import (
    MAX_NAME_LENGTH,
    MAX_PRIORITY,
    MIN_PRIORITY,
    SECONDS_RULE,
    are_seconds,
    new_task_id,
)
from tasks_app.retries import Backoff, RetryPolicy
from tasks_app.signature import check_names, check_types
from tasks_app.store import NewTask, enqueue
from tasks_app.store.announcer import announcer
from tasks_app.store.driver import run
from tasks_app.store.jsontext import to_json
from tasks_app.store.pool import loop_pool
from tasks_app.traces import carried

P = ParamSpec("P")
R = TypeVar("R")
_CHANGEABLE = ("owner", "queue", "priority", "run_at", "max_attempts", "timeout")


@dataclass(frozen=True, slots=True)
class TaskHandle:
    """A task that was stored. `id` is what a client waits with."""

    id: UUID
    name: str
    queue: str
    owner: str

    def __str__(self) -> str:
        return str(self.id)


# Asked for each attempt, and found out by taking the function apart.
_is_coroutine_function = cache(inspect.iscoroutinefunction)


@dataclass(frozen=True, slots=True, eq=False)
class Task(Generic[P, R]):
    """A declared task. Call it to run the function here; `enqueue` it to have a worker run it."""

    func: Callable[P, R]
    name: str
    queue: str = "default"
    queues: tuple[str, ...] = ()
    priority: int = 0
    max_attempts: int | None = None
    retry_on: tuple[type[BaseException], ...] = (BaseException,)
    backoff: Backoff | None = None
    timeout: float | None = None
    expose: bool = False
    sensitive: tuple[str, ...] = ()
    owner: str = ""
    run_at: datetime | None = None

    def __post_init__(self) -> None:
        for broken, rule in _broken_rules(self):
            if broken:
                raise InvalidTask(f"Task {self.name!r}: {rule}")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function right here, without a row."""
        return self.func(*args, **kwargs)

    @property
    def path(self) -> str:
        """Where the function is, as module and qualified name."""
        return f"{self.func.__module__}.{self.func.__qualname__}"

    @property
    def is_async(self) -> bool:
        """True for a coroutine function, which runs on the worker's event loop."""
        return _is_coroutine_function(self.func)

    @property
    def is_external(self) -> bool:
        """True for a task that no worker of ours runs."""
        return False

    @property
    def attempts_allowed(self) -> int:
        """`max_attempts`, or the project's default."""
        return (
            conf.current().DEFAULT_MAX_ATTEMPTS if self.max_attempts is None else self.max_attempts
        )

    @property
    def retry_policy(self) -> RetryPolicy:
        """`retry_on`, and `backoff` or the project's default."""
        return RetryPolicy(self.backoff or default_backoff(), self.retry_on)

    @property
    def time_limit_seconds(self) -> float:
        """`timeout`, or the project's default: an attempt without a limit does not exist."""
        return float(
            conf.current().DEFAULT_TIMEOUT_SECONDS if self.timeout is None else self.timeout
        )

    def using(self, **changes: Any) -> Task[P, R]:
        """The same task with another `owner`, `queue`, `priority`, `run_at`, `max_attempts` or `timeout`.

        Raises InvalidTask for anything else, or for a value that breaks a rule.
        """
        if unknown := changes.keys() - set(_CHANGEABLE):
            raise InvalidTask(
                f"Task {self.name!r}: using() can't change {', '.join(sorted(unknown))}; "
                f"it changes {', '.join(_CHANGEABLE)}."
            )
        return replace(self, **changes)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle:
        """Store a call, inside the transaction that is open on Django's connection; it runs once that commits.

        Raises InvalidArguments or NotJson, with nothing stored.
        """
        new = self.prepare(args, kwargs)
        using = conf.current().DATABASE
        run(enqueue([new]), using)
        transaction.on_commit(lambda: announcer.announce_task(new), using=using)
        return TaskHandle(new.id, new.name, new.queue, new.owner)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle:
        """Store a call from async code, committed on its own. Raises like `enqueue`, and StoreUnavailable."""
        new = self.prepare(args, kwargs)
        await (await loop_pool()).run(enqueue([new]))
        announcer.announce_task(new)
        return TaskHandle(new.id, new.name, new.queue, new.owner)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise InvalidArguments unless a call with these fits the parameters."""
        check_names(self.name, self.func, args, kwargs)

    def check_json(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """The same for JSON from outside, which has to fit the parameters' annotations as well."""
        check_types(self.name, self.func, check_names(self.name, self.func, args, kwargs))

    def prepare(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewTask:
        """The row that a call would be. Raises InvalidArguments or NotJson."""
        self.check(args, kwargs)
        return self._row(args, kwargs)

    def prepare_json(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewTask:
        """The same for JSON from outside, which is checked more closely, and once."""
        new = self._row(args, kwargs)
        self.check_json(args, kwargs)
        return new

    def _row(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewTask:
        limit = conf.current().MAX_BODY_BYTES
        task_id = new_task_id()
        return NewTask(
            id=task_id,
            name=self.name,
            queue=self.queue,
            owner=self.owner,
            priority=self.priority,
            args=to_json(list(args), f"{self.name}: args", limit),
            kwargs=to_json(dict(kwargs), f"{self.name}: kwargs", limit),
            max_attempts=self.attempts_allowed,
            timeout_seconds=self.time_limit_seconds,
            run_at=self.run_at,
            trace_context=carried(task_id, self.name, self.queue),
        )


def default_backoff() -> Backoff:
    """The project's delays between attempts."""
    settings = conf.current()
    return Backoff(settings.RETRY_BASE_SECONDS, settings.RETRY_MAX_SECONDS)


def _broken_rules(task: Task[Any, Any]) -> list[tuple[bool, str]]:
    return [*_rules_of_names(task), *_rules_of_attempts(task), *_rules_of_the_call(task)]


def _rules_of_names(task: Task[Any, Any]) -> list[tuple[bool, str]]:
    names = {"name": task.name, "queue": task.queue, "owner": task.owner}
    return [
        (not callable(task.func), f"{task.func!r} is not callable; @task decorates a function."),
        *(
            (
                len(value) > MAX_NAME_LENGTH,
                f"{what} has {len(value)} characters; at most {MAX_NAME_LENGTH} fit.",
            )
            for what, value in names.items()
        ),
        (not task.queue, "queue is empty; name one, such as 'default'."),
        ("\x00" in "".join(names.values()), "names can't contain NUL."),
    ]


def _rules_of_attempts(task: Task[Any, Any]) -> list[tuple[bool, str]]:
    return [
        (
            not MIN_PRIORITY <= task.priority <= MAX_PRIORITY,
            f"priority is {task.priority}; it must be between {MIN_PRIORITY} and {MAX_PRIORITY}.",
        ),
        (
            task.max_attempts is not None and not 1 <= task.max_attempts <= 100,
            f"max_attempts is {task.max_attempts}; it must be between 1 and 100.",
        ),
        *(
            (
                not (isinstance(error, type) and issubclass(error, BaseException)),
                f"retry_on has {error!r}; it lists exception classes, for example (ConnectionError,).",
            )
            for error in task.retry_on
        ),
        (
            task.backoff is not None and not isinstance(task.backoff, Backoff),
            f"backoff is {task.backoff!r}; use Backoff(base, cap), for example Backoff(base=2, cap=300).",
        ),
        (
            task.timeout is not None and not are_seconds(task.timeout),
            f"timeout is {task.timeout}; it {SECONDS_RULE}.",
        ),
    ]


def _rules_of_the_call(task: Task[Any, Any]) -> list[tuple[bool, str]]:
    return [
        *(
            (
                not _is_parameter(task.func, name),
                f"sensitive has {name!r}; it lists parameters of the function, for example ('password',).",
            )
            for name in task.sensitive
        ),
        (
            task.run_at is not None and task.run_at.tzinfo is None,
            f"run_at is {task.run_at}; it needs a time zone, for example django.utils.timezone.now().",
        ),
    ]


def _is_parameter(func: Callable[..., Any], name: object) -> bool:
    """Can an argument be given by that name? Not the names of *args and **kwargs, which stand for several."""
    parameters = inspect.signature(func).parameters.values()
    kinds = {each.name: each.kind for each in parameters}
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if name in kinds:
        return kinds[name] not in several
    return isinstance(name, str) and inspect.Parameter.VAR_KEYWORD in kinds.values()
