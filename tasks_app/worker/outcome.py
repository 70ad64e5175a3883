"""From what a function did to what the store is told: pure, without a clock and without I/O."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, NamedTuple

from asyncpoll.contract import Status
from tasks_app.errors import Retry
from tasks_app.limits import MAX_NAME_LENGTH
from tasks_app.models.status import EventKind
from tasks_app.retries import RetryPolicy
from tasks_app.store import ENDINGS, Change, Claimed, Milestone
from tasks_app.store.jsontext import clean_text, to_json

_ERROR_CHARACTERS = 4_000
_TRACEBACK_CHARACTERS = 20_000
# The message of a waiting task quotes its last error; the whole of it is in the error itself.
_QUOTED_CHARACTERS = 300
# Frames of these modules say nothing about the task.
_OWN_MODULES = "tasks_app.worker."


class Fate(Enum):
    """Why an attempt is over before its function is."""

    TIMED_OUT = "timed out"
    LOST = "lost"
    RELEASED = "released"


class Ending(NamedTuple):
    """How a function ended: with `result` (JSON text) or with an error. `permanent`: another attempt is no use.

    `error` is the class of what the function raised, `retry_after` the delay in seconds that it asked for.
    """

    result: str | None = None
    error_type: str = ""
    error_message: str = ""
    traceback: str = ""
    permanent: bool = False
    error: type[BaseException] | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Unfit:
    """Returned in place of a value that can't be stored, by code that found out itself: `error` says why."""

    error: Exception


def returned(name: str, value: Any, limit: int) -> Ending:
    """The function returned `value`. One that can't be stored, or has over `limit` bytes, is a permanent failure."""
    if isinstance(value, Unfit):
        return raised(value.error)._replace(permanent=True)
    try:
        return Ending(to_json(value, f"The result of {name}", limit))
    except Exception as error:
        # Not only NotJson: a value's own methods may raise anything.
        return Ending(
            error_type=type(error).__name__,
            error_message=_say(error),
            permanent=True,
            error=type(error),
        )


def raised(error: BaseException) -> Ending:
    """The function raised `error`. The first frames of the traceback are the worker's own and are left out."""
    return Ending(
        error_type=clean_text(type(error).__name__)[:MAX_NAME_LENGTH],
        error_message=_say(error),
        traceback=_trace(error),
        error=type(error),
        retry_after=error.after if isinstance(error, Retry) else None,
    )


def conclude(
    claimed: Claimed,
    ending: Ending,
    policy_of: Callable[[str], RetryPolicy],
    *,
    fate: Fate | None = None,
    cancelled: bool = False,
    jitter: Callable[[], float] = random.random,
) -> Change | None:
    """What an attempt that ended like that means for its task; None when the task is no longer ours to change. `policy_of`
    gives what is done about a failure, by the name of the task.

    A result counts, except after the time limit. Anything else is the end of a task whose cancel was asked for.
    """
    if fate is Fate.LOST:
        return None
    if fate is not Fate.TIMED_OUT and ending.result is not None:
        return _end(claimed, Status.SUCCESS, progress=1.0, result=ending.result)
    if cancelled and not ending.permanent:
        return _end(claimed, Status.CANCELLED)
    if fate is Fate.RELEASED and not ending.permanent:
        return release(claimed)
    if fate is Fate.TIMED_OUT:
        ending = timed_out(claimed)
    return _failure(claimed, ending, policy_of(claimed.name), jitter)


def release(claimed: Claimed) -> Change:
    """Give the task back at once; the attempt is not counted as a failure."""
    milestone = Milestone(EventKind.RELEASED.value)
    return Change(claimed.id, claimed.attempt, Status.PENDING, (milestone,))


def timed_out(claimed: Claimed) -> Ending:
    """The attempt ran longer than it may."""
    limit = f"{claimed.timeout_seconds:g}"
    return Ending(
        error_type=TimeoutError.__name__,
        error_message=f"Attempt {claimed.attempt} exceeded its time limit of {limit} s.",
    )


def poisoned(change: Change, error: BaseException) -> Change:
    """Instead of a change that the database refuses: the task fails, with the database's reason."""
    reason = f"The database refused what attempt {change.attempt} had to say: {_say(error)}"
    return change._replace(
        status=Status.FAILED,
        milestones=(Milestone(ENDINGS[Status.FAILED]),),
        result=None,
        error_type=clean_text(type(error).__name__)[:MAX_NAME_LENGTH],
        error_message=reason[:_ERROR_CHARACTERS],
        error_class=class_path(type(error)),
        traceback="",
        failed=True,
        delay_seconds=0.0,
    )


def _failure(
    claimed: Claimed, ending: Ending, policy: RetryPolicy, jitter: Callable[[], float]
) -> Change:
    facts: dict[str, Any] = {
        "error_type": ending.error_type,
        "error_message": ending.error_message,
        "error_class": class_path(ending.error or TimeoutError),
        "traceback": ending.traceback,
        "failed": True,
    }
    is_last = claimed.failures + 1 >= claimed.max_attempts
    if is_last or ending.permanent or not policy.covers(ending.error):
        return _end(claimed, Status.FAILED, **facts)
    delay = ending.retry_after
    if delay is None:
        delay = policy.backoff.delay(claimed.failures, jitter())
    quoted = f"{ending.error_type}: {ending.error_message}"[:_QUOTED_CHARACTERS]
    milestone = Milestone(
        EventKind.RETRIED.value,
        message=f"Attempt {claimed.attempt} failed ({quoted}); the next may start in {delay:.1f} s.",
    )
    return Change(
        claimed.id, claimed.attempt, Status.PENDING, (milestone,), delay_seconds=delay, **facts
    )


def _end(claimed: Claimed, status: Status, progress: float | None = None, **facts: Any) -> Change:
    return Change(
        claimed.id, claimed.attempt, status, (Milestone(ENDINGS[status], progress),), **facts
    )


def class_path(error: type[BaseException]) -> str:
    """Module and qualified name, from which the class can be imported again."""
    return clean_text(f"{error.__module__}.{error.__qualname__}")


def trace_of(error: BaseException) -> TracebackType | None:
    """Where `error` was raised, from the first frame that is not the worker's own."""
    inner = error.__traceback__.tb_next if error.__traceback__ else None
    while inner is not None and _is_own(inner):
        inner = inner.tb_next
    return inner


def _say(error: BaseException) -> str:
    try:
        return clean_text(str(error))[:_ERROR_CHARACTERS]
    except Exception:
        # The task's own code, like everything that an error consists of.
        return f"(its message can't be shown: str() of a {type(error).__name__} raises)"


def _trace(error: BaseException) -> str:
    try:
        lines = traceback.format_exception(type(error), error, trace_of(error))
    except Exception:
        # As above.
        return ""
    return clean_text("".join(lines))[-_TRACEBACK_CHARACTERS:]


def _is_own(frame: TracebackType) -> bool:
    return str(frame.tb_frame.f_globals.get("__name__")).startswith(_OWN_MODULES)
