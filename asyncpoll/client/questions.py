"""What can be asked: how each question is put, and what its answers mean. No I/O, no time, no retries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol
from urllib.parse import quote

from asyncpoll.client.answer import (
    Answer,
    Milestone,
    read_answer,
    read_entries,
    read_milestones,
)
from asyncpoll.client.documents import Unreadable, milliseconds
from asyncpoll.client.errors import StaleResponseError
from asyncpoll.client.exchange import Request
from asyncpoll.client.given import canonical
from asyncpoll.client.policy import PollPolicy

# What an answer may take on top of its hold, where the caller only said how long to wait.
_ON_THE_WAY_SECONDS: Final = 1.0
REMEDY: Final = "look whether the server is well and has this address, and ask again"


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

    @property
    def at_last(self) -> Any:
        """What settles it once its time is up, or None."""
        ...

    @property
    def remedy(self) -> str:
        """What to do when the server is not to be had, for messages."""
        ...

    @property
    def again(self) -> str:
        """What to do when the time was not enough, for messages."""
        ...

    def patience(self, policy: PollPolicy) -> float:
        """How long to try, unless the caller says."""
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


class OfOne:
    """What questions about one thing have in common. They are held."""

    waits = holds = ours = True
    remedy = REMEDY
    again = "Wait again from the last answer's cursor, or with a longer lifetime"

    def __init__(self, about: str) -> None:
        self.about = about
        self.last: Any = None
        self.at_last: Any = None

    @property
    def unfinished(self) -> tuple[str, ...]:
        """What it is about."""
        return (self.about,)

    def patience(self, policy: PollPolicy) -> float:
        """Waiting may take longer than other calls."""
        return policy.lifetime_seconds if self.waits else policy.call_seconds

    def longest_hold(self) -> float | None:
        """As long as the policy allows."""
        return None


class Once(OfOne):
    """A question that its first answer settles."""

    waits = holds = False

    def __init__(
        self,
        request: Request,
        about: str,
        read: Callable[[Mapping[str, Any]], Any] = read_answer,
        remedy: str = REMEDY,
    ) -> None:
        super().__init__(about)
        self.remedy = remedy
        self._request = request
        self._read = read

    def request(self, hold: float, buster: str | None) -> Request:
        """The same each time."""
        return self._request

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """All there is."""
        return Heard(done=True, value=self._read(document))


class UntilOver(OfOne):
    """Follows one task to its end. News are the answers that told something new."""

    def __init__(self, task_id: str, version: int = 0) -> None:
        super().__init__(task_id)
        self._version = version

    def request(self, hold: float, buster: str | None) -> Request:
        """A long poll from the version known."""
        query = (("client_known_version", str(self._version)), *holding(hold, buster))
        path = f"tasks/{quote(self.about, safe='')}/long_poll"
        return Request("wait", "GET", path, query, tasks=(self.about,))

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


class EveryMilestone(OfOne):
    """Follows one task's history. News are its milestones."""

    def __init__(self, task_id: str, after: int = 0) -> None:
        super().__init__(task_id)
        self._after = after
        self._gap = False

    def request(self, hold: float, buster: str | None) -> Request:
        """What happened since the last milestone told."""
        query = (("after", str(self._after)), *holding(hold, buster))
        path = f"tasks/{quote(self.about, safe='')}/events"
        return Request("watch", "GET", path, query, tasks=(self.about,))

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """Each milestone once, unless the history began anew."""
        answer = about_task(read_answer(document), self.about)
        told = read_milestones(document, answer)
        pause = answer.backoff_ms / 1000
        if answer.version < self._after and not answer.reset:
            return Heard(pause=pause, fresh=False)
        if answer.reset:
            self._after = 0
        self.last = answer
        self._gap = self._gap or document.get("gap") is True
        news = tuple(self._told(one) for one in told if one.version > self._after)
        moved = self._move_on(document, max([answer.version, *(one.version for one in told)]))
        done = document.get("should_continue_polling") is False
        return Heard(news, done, answer, pause, moved, stalled(answer))

    def _told(self, milestone: Milestone) -> Milestone:
        """The first one after a gap says so."""
        gap, self._gap = self._gap, False
        return replace(milestone, gap=gap)

    def _move_on(self, document: Mapping[str, Any], latest: int) -> bool:
        """To where the server says: beyond what it does not keep any more, never beyond the `latest` it has told of.

        Its events may be newer than what it says of the task.
        """
        after = document.get("next_after")
        if not isinstance(after, int) or not self._after < after <= latest:
            return False
        self._after = after
        return True


class Inbox(OfOne):
    """Looks into the inbox until there is something; an empty one is an answer once the time is up."""

    waits = False

    def __init__(self, hold: float) -> None:
        super().__init__("inbox")
        self._hold = hold

    def patience(self, policy: PollPolicy) -> float:
        """As long as the caller wants to wait, and a little for the answer; or as any other call."""
        return self._hold + _ON_THE_WAY_SECONDS if self._hold else policy.call_seconds

    def longest_hold(self) -> float | None:
        """As long as the caller wants to wait."""
        return self._hold

    def request(self, hold: float, buster: str | None) -> Request:
        """What is not acknowledged."""
        return Request("inbox", "GET", "inbox", holding(hold, buster))

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """All there is; nothing is an answer only to who does not wait."""
        self.at_last = entries = read_entries(document)
        pause = (milliseconds(document, "recommended_client_backoff_ms") or 0.0) / 1000
        done = bool(entries) or not self._hold
        return Heard(done=done, value=entries, pause=pause, fresh=False)


def holding(hold: float, buster: str | None) -> tuple[tuple[str, str], ...]:
    """The parameters of a hold."""
    asked = (("max_hold_seconds", f"{hold:.3f}".rstrip("0").rstrip(".")),)
    return asked if buster is None else (*asked, ("_", buster))


def about_task(answer: Answer, task_id: str) -> Answer:
    """The answer itself. Raises Unreadable if it is about another task."""
    if canonical(answer.task_id) != task_id:
        raise Unreadable(f"it is about task {answer.task_id}, not {task_id}")
    return answer


def stalled(answer: Answer) -> StaleResponseError | None:
    """The error for a task whose heartbeat has stopped."""
    if not answer.stalled:
        return None
    return StaleResponseError(
        f"Task {answer.task_id} is RUNNING, but whoever ran it has stopped its heartbeat (version {answer.version}). "
        "Wait on with on_stale='retry', since a worker will take it over, or give a fallback of your own.",
        answer,
    )
