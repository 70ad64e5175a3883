"""Every exception of tasks_app. A message names the value, the rule it broke, and the remedy."""

from __future__ import annotations

from uuid import UUID

LONGEST_DELAY_SECONDS = 31_536_000


class TasksError(Exception):
    """Root of all errors raised by tasks_app."""


class ConfigurationError(TasksError):
    """A setting is wrong. Raised at start, never while serving."""


class InvalidTask(TasksError):
    """A task declaration breaks a rule of the `@task` decorator."""


class InvalidSchedule(TasksError):
    """A declared schedule breaks a rule: its cron expression, its time zone, its name, or its arguments."""


class InvalidScope(TasksError):
    """A token was asked for with a scope that there is not."""


class UnknownTask(TasksError):
    """No task of that name was declared in this process."""


class InvalidArguments(TasksError):
    """The arguments do not fit the task's signature, or are not JSON."""


class OutOfBounds(TasksError):
    """A submission asks for more than the task's declaration allows."""

    def __init__(self, message: str, parameter: str) -> None:
        self.parameter = parameter
        super().__init__(message)


class Retry(TasksError):
    """Raised by a task that wants to be tried again: `raise Retry(after=60, reason="rate limited")`.

    It counts as a failure, so that the last attempt allowed ends the task as FAILED; `retry_on` does not have to list
    it. `after` is the exact delay in seconds, None: what the task's backoff gives.
    """

    def __init__(self, after: float | None = None, reason: str = "") -> None:
        if after is not None and not 0 <= after <= LONGEST_DELAY_SECONDS:
            raise ValueError(
                f"Retry(after={after!r}): it is a delay in seconds, from 0 to {LONGEST_DELAY_SECONDS} (a year)."
            )
        self.after = after
        super().__init__(reason or "The task asked to be tried again.")


class NotJson(TasksError, ValueError):
    """A value can't be stored as JSON in Postgres: NaN, NUL, a lone surrogate, too large, or not JSON at all."""


class BadParameter(TasksError):
    """A query parameter breaks a rule."""

    def __init__(self, parameter: str, value: str, rule: str) -> None:
        self.parameter = parameter
        shown = value if len(value) <= 60 else f"{value[:57]}..."
        super().__init__(f"{parameter} is {shown!r}; it {rule}.")


class KeyReused(TasksError):
    """An idempotency key came with another body than the first time."""


class NotifyRefused(TasksError):
    """The end of a task can't be told where it was asked to be."""

    def __init__(self, message: str, parameter: str) -> None:
        self.parameter = parameter
        super().__init__(message)


class TaskNotFound(TasksError):
    """No task has that id, or it belongs to somebody else: the two can't be told apart."""

    def __init__(self, task_id: UUID) -> None:
        super().__init__(f"There is no task {task_id}, or it is not yours; check the id.")


class TooManyHeld(TasksError):
    """The process is past the last of its limits."""


class ClaimedTooOften(TasksError):
    """A caller claims in a loop, without being held and without getting anything."""


class TaskGone(TasksError):
    """The task was deleted while somebody waited for it."""


class StoreUnavailable(TasksError):
    """The database could not be reached in time. Nothing was changed; try again."""


class RowLocked(StoreUnavailable):
    """Another transaction keeps the row locked. Nothing was changed; try again once it has ended."""


class Unmigrated(StoreUnavailable):
    """A table or column is not there any more, although this process found it at its start: run manage.py migrate."""


class NotMigrated(ConfigurationError):
    """The database lacks migrations that this code needs."""


class PoolerInTheWay(ConfigurationError):
    """LISTEN goes through a transaction-pooling proxy, which is silently deaf."""


class StepRefused(TasksError):
    """A step was reported for a task that is over, unknown, or held by a worker; or it was begun twice at once."""


class LeaseExpired(TasksError):
    """The worker that ran an attempt stopped answering. Stored as the error of that attempt, never raised."""


class CounterExhausted(TasksError):
    """A task's version or attempt is at the end of its column. Stored as the error of a task, never raised."""


class LeaseLost(TasksError):
    """The attempt does not hold its task any more: a step of it was not recorded, and nothing else of it counts."""


class NoCurrentTask(TasksError):
    """`current_task()` was called outside a running task."""


class Cancelled(BaseException):
    """The task was asked to stop, and does. Raised by `current_task().raise_if_cancelled()`; ends it as CANCELLED.

    Not an Exception, like asyncio's own: code that goes on after the error of one item must not go on after this.
    """

    def __init__(self, name: str, task_id: UUID) -> None:
        super().__init__(f"{name} {task_id} was asked to stop, or its attempt no longer counts.")
