"""One question about many tasks: the many-task wait, as many at a time as one request may ask for, over one connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from asyncpoll.client.answer import Answer, read_answer
from asyncpoll.client.documents import milliseconds, objects
from asyncpoll.client.errors import Misused, Refused
from asyncpoll.client.exchange import Request
from asyncpoll.client.given import canonical, number, several
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.questions import REMEDY, Heard, holding, stalled
from asyncpoll.client.troubles import refusal

# With more tasks than fit into one request, as many as do are held in turn, so that the others are not late by a hold.
TURN_SECONDS: Final = 2.0


class Many:
    """Waits for many tasks. News are the answers of those that are over, as they end."""

    waits = holds = ours = True
    at_last = None
    remedy = REMEDY
    again = "Wait again for all that is unfinished, or with a longer lifetime"

    def __init__(
        self,
        task_ids: Iterable[object],
        *,
        enough: int | None = None,
        linger_ms: float = 0,
        at_once: int = 100,
    ) -> None:
        self._given = tuple(map(canonical, several("task_ids", task_ids, "ids")))
        self._versions = dict.fromkeys(self._given, 0)
        self.about = ", ".join(list(self._versions)[:3]) or "no task"
        self.last: Answer | None = None
        self.problems: dict[str, Refused] = {}
        self._enough = len(self._versions) if enough is None else enough
        self._over = 0
        self._linger_ms = round(number("linger_ms", linger_ms))
        self._at_once = at_once
        self._asked: tuple[str, ...] = ()

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Those that are still waited for."""
        return tuple(self._versions)

    def patience(self, policy: PollPolicy) -> float:
        """As long as for one."""
        return policy.lifetime_seconds

    def longest_hold(self) -> float | None:
        """Short turns while there are more than one request can ask for."""
        return TURN_SECONDS if len(self._versions) > self._at_once else None

    def request(self, hold: float, buster: str | None) -> Request:
        """Those whose turn it is; they go to the end of the queue."""
        self._asked = tuple(self._versions)[: self._at_once]
        asked = tuple(("task", f"{one}:{self._versions[one]}") for one in self._asked)
        linger = (("linger_ms", str(self._linger_ms)),) if self._linger_ms else ()
        query = (*asked, *linger, *holding(hold, buster))
        return Request("wait_many", "GET", "tasks/long_poll", query, tasks=self._asked)

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """Those that moved; one that can't be answered is set aside."""
        answers = [read_answer(one) for one in objects(document, "tasks")]
        fresh = [answer for answer in answers if self._take(answer)]
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
        """An answer for each task that was given, however often it was. Raises the first problem."""
        self.raise_problem()
        of = {canonical(answer.task_id): answer for answer in answers}
        return [of[task_id] for task_id in self._given]

    def first(self, answer: Answer | None) -> Answer:
        """The answer there is. Raises the first problem, or Misused if there was no task."""
        if answer is None:
            self.raise_problem()
            raise Misused("There is no task to wait for; give one id or more.")
        return answer

    def _take(self, answer: Answer) -> bool:
        """Whether it tells something new."""
        task_id = canonical(answer.task_id)
        known = self._versions.get(task_id)
        if known is None or not (answer.version > known or answer.reset):
            return False
        self.last = answer
        self._versions[task_id] = answer.version
        if answer.is_terminal:
            del self._versions[task_id]
            self._over += 1
        return True

    def _set_aside(self, problem: Mapping[str, Any]) -> None:
        """A problem that passes, such as a database away, leaves the task among the others."""
        task_id = str(problem.get("task", "")).partition(":")[0]
        status = problem.get("status")
        if task_id in self._versions and isinstance(status, int) and 400 <= status < 500:
            del self._versions[task_id]
            self.problems[task_id] = refusal(status, problem, f"task {task_id}")
