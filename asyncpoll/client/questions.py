"""What can be asked: how each question is put, and what its answers mean. No I/O, no time, no retries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from asyncpoll.client.answer import (
    Answer,
    Unreadable,
    canonical,
    milliseconds,
    read_answer,
    read_milestones,
)
from asyncpoll.client.errors import Misused, Refused, StaleResponseError, TaskGone, TaskNotFound
from asyncpoll.client.exchange import Request
from asyncpoll.contract import Problem

# The server's own bound.
MOST_TASKS_AT_ONCE = 100
# With more tasks than fit into one request, each hundred is held in turn, so that the others are not late by a hold.
TURN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Heard:
    """What an answer meant: news, whether that was all, and the pause that the server asks for.

    `fresh` is false where it told nothing that was not known, such as a roll-over or an answer out of a cache.
    `stuck` is the error to raise for a task that does not get on.
    """

    news: tuple[Any, ...] = ()
    done: bool = False
    value: Any = None
    pause: float = 0.0
    fresh: bool = True
    stuck: StaleResponseError | None = None


class Question(Protocol):
    """One thing to find out, with as many requests as it takes."""

    @property
    def about(self) -> str:
        """The task, for messages."""
        ...

    @property
    def waits(self) -> bool:
        """True if it is about how something ends."""
        ...

    @property
    def holds(self) -> bool:
        """True if its requests are held."""
        ...

    @property
    def ours(self) -> bool:
        """True if asyncpoll is to answer."""
        ...

    @property
    def last(self) -> Any:
        """The last answer, or None."""
        ...

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The tasks that are still waited for."""
        ...

    def longest_hold(self) -> float | None:
        """A bound on the hold that the question has of its own."""
        ...

    def request(self, hold: float, buster: str | None) -> Request:
        """What to send next, held for so many seconds; with a word that no cache has seen, if one is needed."""
        ...

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """Take an answer. Raises Unreadable."""
        ...


class Once:
    """A question that its first answer settles."""

    waits = holds = False
    ours = True

    def __init__(
        self, request: Request, about: str, read: Callable[[Mapping[str, Any]], Any] = read_answer
    ) -> None:
        self.about = about
        self.last: Any = None
        self._request = request
        self._read = read

    @property
    def unfinished(self) -> tuple[str, ...]:
        """What it is about."""
        return (self.about,)

    def longest_hold(self) -> float | None:
        """It does not hold."""
        return None

    def request(self, hold: float, buster: str | None) -> Request:
        """The same each time."""
        return self._request

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """All there is."""
        return Heard(done=True, value=self._read(document))


class UntilOver:
    """Follows one task to its end. News are the answers that told something new."""

    waits = holds = ours = True

    def __init__(self, task_id: str, version: int = 0) -> None:
        self.about = task_id
        self.last: Answer | None = None
        self._version = version

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The task."""
        return (self.about,)

    def longest_hold(self) -> float | None:
        """As long as the policy allows."""
        return None

    def request(self, hold: float, buster: str | None) -> Request:
        """A long poll from the version known."""
        query = (("client_known_version", str(self._version)), *holding(hold, buster))
        return Request("wait", "GET", f"tasks/{quote(self.about)}/long_poll", query)

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """A version below the known one, which no reset explains, comes from a cache and tells nothing."""
        answer = about_task(read_answer(document), self.about)
        pause = answer.backoff_ms / 1000
        if answer.version < self._version and not answer.reset:
            return Heard(pause=pause, fresh=False)
        fresh = answer.version != self._version or answer.reset
        self._version, self.last = answer.version, answer
        return Heard(
            (answer,) if fresh or answer.is_terminal else (),
            answer.is_terminal,
            answer,
            pause,
            fresh,
            stalled(answer),
        )


class EveryMilestone:
    """Follows one task's history. News are its milestones."""

    waits = holds = ours = True

    def __init__(self, task_id: str, after: int = 0) -> None:
        self.about = task_id
        self.last: Answer | None = None
        self._after = after

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The task."""
        return (self.about,)

    def longest_hold(self) -> float | None:
        """As long as the policy allows."""
        return None

    def request(self, hold: float, buster: str | None) -> Request:
        """What happened since the last milestone told."""
        query = (("after", str(self._after)), *holding(hold, buster))
        return Request("watch", "GET", f"tasks/{quote(self.about)}/events", query)

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """Each milestone once, unless the history began anew."""
        answer = about_task(read_answer(document), self.about)
        told = read_milestones(document, answer)
        if answer.reset:
            self._after = 0
        news = tuple(one for one in told if one.version > self._after)
        stale = answer.version < self._after
        if news:
            self._after = news[-1].version
        if not stale:
            self.last = answer
        return Heard(
            news,
            document.get("should_continue_polling") is False and not stale,
            answer,
            answer.backoff_ms / 1000,
            bool(news),
            stalled(answer),
        )


class Many:
    """Waits for many tasks. News are the answers of those that are over, as they end."""

    waits = holds = ours = True

    def __init__(
        self, task_ids: Iterable[object], *, enough: int | None = None, linger_ms: int = 0
    ) -> None:
        self._versions = dict.fromkeys((canonical(task_id) for task_id in task_ids), 0)
        self._given = tuple(self._versions)
        self.about = ", ".join(list(self._versions)[:3]) or "no task"
        self.last: Answer | None = None
        self.problems: dict[str, Refused] = {}
        self._enough = len(self._versions) if enough is None else enough
        self._over = 0
        self._linger_ms = linger_ms
        self._asked: tuple[str, ...] = ()

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Those that are still waited for."""
        return tuple(self._versions)

    def longest_hold(self) -> float | None:
        """Short turns while there are more than one request can ask for."""
        return TURN_SECONDS if len(self._versions) > MOST_TASKS_AT_ONCE else None

    def request(self, hold: float, buster: str | None) -> Request:
        """The hundred whose turn it is; they go to the end of the queue."""
        self._asked = tuple(self._versions)[:MOST_TASKS_AT_ONCE]
        asked = tuple(("task", f"{one}:{self._versions[one]}") for one in self._asked)
        linger = (("linger_ms", str(self._linger_ms)),) if self._linger_ms else ()
        query = (*asked, *linger, *holding(hold, buster))
        return Request("wait_many", "GET", "tasks/long_poll", query)

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """Those that moved; one that can't be answered is set aside."""
        answers = [read_answer(one) for one in objects(document, "tasks")]
        fresh = [answer for answer in answers if self._is_new(answer)]
        for answer in fresh:
            self._take(answer)
        for problem in objects(document, "problems"):
            self._set_aside(problem)
        for task_id in self._asked:
            if task_id in self._versions:
                self._versions[task_id] = self._versions.pop(task_id)
        return Heard(
            tuple(answer for answer in fresh if answer.is_terminal),
            self._over >= self._enough or not self._versions,
            None,
            (milliseconds(document, "recommended_client_backoff_ms") or 0.0) / 1000,
            bool(fresh),
            next(filter(None, map(stalled, fresh)), None),
        )

    def raise_problem(self) -> None:
        """Raise the first of the problems, if there are any."""
        for error in self.problems.values():
            raise error

    def in_order(self, answers: Iterable[Any]) -> list[Answer]:
        """The answers in the order in which the tasks were given. Raises the first problem."""
        self.raise_problem()
        of = {canonical(answer.task_id): answer for answer in answers}
        return [of[task_id] for task_id in self._given]

    def first(self, answer: Answer | None) -> Answer:
        """The answer there is. Raises the first problem, or Misused if there was no task."""
        if answer is None:
            self.raise_problem()
            raise Misused("There is no task to wait for; give one id or more.")
        return answer

    def _is_new(self, answer: Answer) -> bool:
        known = self._versions.get(canonical(answer.task_id))
        return known is not None and (answer.version > known or answer.reset)

    def _take(self, answer: Answer) -> None:
        self.last = answer
        if answer.is_terminal:
            del self._versions[answer.task_id]
            self._over += 1
        else:
            self._versions[answer.task_id] = answer.version

    def _set_aside(self, problem: Mapping[str, Any]) -> None:
        """A problem that passes, such as a database away, leaves the task among the others."""
        task_id = str(problem.get("task", "")).partition(":")[0]
        status = problem.get("status")
        if task_id in self._versions and isinstance(status, int) and 400 <= status < 500:
            del self._versions[task_id]
            self.problems[task_id] = refusal(status, problem, f"task {task_id}")


class Inbox:
    """Waits until there is something in the inbox, once."""

    waits = holds = ours = True
    about = "inbox"

    def __init__(self, hold: float, read: Callable[[Mapping[str, Any]], Any]) -> None:
        self.last: Any = None
        self._hold = hold
        self._read = read

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The inbox."""
        return (self.about,)

    def longest_hold(self) -> float | None:
        """As long as the caller wants."""
        return self._hold

    def request(self, hold: float, buster: str | None) -> Request:
        """What is not acknowledged."""
        return Request("inbox", "GET", "inbox", holding(hold, buster))

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """All there is, which may be nothing."""
        return Heard(done=True, value=self._read(document))


def holding(hold: float, buster: str | None) -> tuple[tuple[str, str], ...]:
    """The parameters of a hold."""
    asked = (("max_hold_seconds", f"{hold:.3f}".rstrip("0").rstrip(".")),)
    return asked if buster is None else (*asked, ("_", buster))


def about_task(answer: Answer, task_id: str) -> Answer:
    """The answer itself. Raises Unreadable if it is about another task."""
    if canonical(answer.task_id) != task_id:
        raise Unreadable(f"it is about task {answer.task_id}, not {task_id}")
    return answer


def objects(document: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The objects in a list; none if there is no such list."""
    found = document.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def refusal(status: int, problem: Mapping[str, Any], what: str) -> Refused:
    """The error for a problem document that says no for good."""
    kind = problem.get("type")
    detail = problem.get("detail") or problem.get("title") or "no reason was given"
    message = f"{what}: {status}, {detail}"
    if kind == Problem.TASK_NOT_FOUND:
        return TaskNotFound(message, status, problem)
    if kind == Problem.TASK_GONE or status == 410:
        return TaskGone(message, status, problem)
    return Refused(message, status, problem)


def stalled(answer: Answer) -> StaleResponseError | None:
    """The error for a task whose heartbeat has stopped."""
    if not answer.stalled:
        return None
    return StaleResponseError(
        f"Task {answer.task_id} is RUNNING, but whoever ran it has stopped its heartbeat (version {answer.version}). "
        "Wait on with on_stale='retry', since a worker will take it over, or give a fallback of your own.",
        answer,
    )
