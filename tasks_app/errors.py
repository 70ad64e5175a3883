"""Every exception of tasks_app. A message names the value, the rule it broke, and the remedy."""

from __future__ import annotations


class TasksError(Exception):
    """Root of all errors raised by tasks_app."""


class ConfigurationError(TasksError):
    """A setting is wrong. Raised at start, never while serving."""


class InvalidTask(TasksError):
    """A task declaration breaks a rule of the `@task` decorator."""


class UnknownTask(TasksError):
    """No task of that name was declared in this process."""


class InvalidArguments(TasksError):
    """The arguments do not fit the task's signature, or are not JSON."""


class OutOfBounds(TasksError):
    """A submission asks for more than the task's declaration allows."""

    def __init__(self, message: str, parameter: str) -> None:
        self.parameter = parameter
        super().__init__(message)


class NotJson(TasksError):
    """A value can't be stored as JSON in Postgres: NaN, NUL, a lone surrogate, too large, or not JSON at all."""


class BadParameter(TasksError):
    """A query parameter breaks a rule."""

    def __init__(self, parameter: str, value: str, rule: str) -> None:
        self.parameter = parameter
        shown = value if len(value) <= 60 else f"{value[:57]}..."
        super().__init__(f"{parameter} is {shown!r}; it {rule}.")


class TaskNotFound(TasksError):
    """No task has that id, or it belongs to somebody else: the two can't be told apart."""


class TooManyHeld(TasksError):
    """The process is past the last of its limits."""


class TaskGone(TasksError):
    """The task was deleted while somebody waited for it."""


class StoreUnavailable(TasksError):
    """The database could not be reached in time. Nothing was changed; try again."""


class GoingAway(TasksError):
    """The process is draining and takes no new work. Nothing was changed; try again."""


class PoolerInTheWay(ConfigurationError):
    """LISTEN goes through a transaction-pooling proxy, which is silently deaf."""


class StepRefused(TasksError):
    """A step was reported for a task that is over, unknown, or held by a worker."""


class NoCurrentTask(TasksError):
    """`current_task()` was called outside a running task."""
