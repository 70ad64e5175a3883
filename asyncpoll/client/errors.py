"""Everything that can go wrong for a client. Messages name the value, the rule and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from asyncpoll.contract import Status


class TaskState(Protocol):
    """What an error knows of the task: the last `Answer`."""

    @property
    def task_id(self) -> str: ...
    @property
    def status(self) -> Status: ...
    @property
    def version(self) -> int: ...
    @property
    def progress(self) -> float | None: ...
    @property
    def message(self) -> str: ...
    @property
    def error(self) -> Mapping[str, Any] | None: ...


class AsyncpollError(Exception):
    """The root of all errors that the client raises. `attempts` are the last requests that were made, latest last."""

    attempts: tuple[Any, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pools of processes send errors to one another."""
        return _restored, (type(self), self.args, self.__dict__)


class Unreachable(AsyncpollError):
    """The server gave no usable answer, as often as the policy's budgets allow."""


class Busy(Unreachable):
    """The server kept answering 429 or 503."""


class ResponseTooLarge(AsyncpollError):
    """An answer was longer than the policy's `max_body_bytes`."""


class Refused(AsyncpollError):
    """The server refuses the request and will go on doing so. `problem` is its RFC 9457 document, or empty."""

    def __init__(self, message: str, status: int, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem: Mapping[str, Any] = problem or {}

    @property
    def type(self) -> str:
        """The problem's stable `type`, such as `/problems/forbidden`; empty if there was no document."""
        return str(self.problem.get("type", ""))


class TaskNotFound(Refused):
    """There is no such task, or it is somebody else's."""


class TaskGone(Refused):
    """The task was deleted."""


class Redirected(Refused):
    """The answer was a redirect. Redirects are not followed: the token would go along."""


class TaskFailed(AsyncpollError):
    """The task ended without a result. `answer` has its error."""

    def __init__(self, answer: TaskState) -> None:
        error = answer.error or {}
        reason = f": {error.get('type')}: {error.get('message')}" if error else "."
        super().__init__(f"Task {answer.task_id} is {answer.status}{reason}")
        self.answer = answer


class Misused(AsyncpollError, ValueError):
    """An argument breaks a rule; nothing was sent."""


class StaleResponseError(AsyncpollError):
    """Stuck, not slow: the answers do not change any more, or whoever ran the task has stopped its heartbeat."""

    def __init__(self, message: str, answer: Any) -> None:
        super().__init__(message)
        self.answer = answer


class PollLifetimeExceeded(AsyncpollError, TimeoutError):
    """Waiting has ended before the task did.

    `task_id` is the task's, or the URL that was waited for; `answer` the last answer or None; `attempt_count` how
    many requests were made; `unfinished` all that was still waited for, `task_id` first; `again` how to wait on;
    `notified` whether the server has accepted to put the end into the message centre.
    """

    def __init__(
        self,
        task_id: str,
        answer: Any = None,
        *,
        reason: str,
        attempt_count: int = 0,
        unfinished: Sequence[str] = (),
        again: str = "Wait again, or with a longer lifetime",
    ) -> None:
        super().__init__(task_id, reason)
        self.task_id = task_id
        self.answer = answer
        self.reason = reason
        self.attempt_count = attempt_count
        self.unfinished = tuple(unfinished) or (task_id,)
        self.again = again
        self.notified = False

    def __str__(self) -> str:
        seen = self._seen()
        if self.attempts and self.attempts[-1].error:
            seen += f", and the last request failed: {self.attempts[-1].error}"
        return (
            f"Gave up waiting for {self._whom()} {self.reason} and {self.attempt_count} requests; {seen}. "
            f"{self.again}. To the user: {self.for_user}"
        )

    def _whom(self) -> str:
        several = len(self.unfinished)
        return self.task_id if several == 1 else f"{several} tasks, the first {self.task_id},"

    def _seen(self) -> str:
        """What the last answer said, and of which task where that is not the one that is named."""
        several = len(self.unfinished) > 1
        if self.answer is None:
            return "none was ever seen" if several else "it was never seen"
        if isinstance(self.answer, Mapping):
            status = self.answer.get("status", self.answer.get("state"))
            return f"it was {status!r:.80} last"
        if several or self.answer.task_id != self.task_id:
            return f"the last answer was that {self.answer.task_id} is {self.answer.status}"
        return f"it was {self.answer.status} last"

    @property
    def for_user(self) -> str:
        """A sentence for the person whose task it is. Only who was `notified` is promised the message centre."""
        background = "Your request is still being worked on in the background"
        if self.notified:
            return f"{background}; the result will be in your message centre."
        return f"{background}; please look again later."


def _restored(
    kind: type[AsyncpollError], args: tuple[Any, ...], state: dict[str, Any]
) -> AsyncpollError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error
