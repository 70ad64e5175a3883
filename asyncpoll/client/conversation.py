"""The rules of waiting, without I/O: an answer or a failure and the time go in, the next step comes out."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, TypeVar

from asyncpoll.client import given
from asyncpoll.client.documents import Unreadable, document_in, milliseconds, problem_in
from asyncpoll.client.errors import Busy, PollLifetimeExceeded, StaleResponseError, Unreachable
from asyncpoll.client.exchange import (
    Ask,
    Attempt,
    Done,
    Event,
    Failure,
    FailureKind,
    GiveUp,
    Instead,
    News,
    OnStale,
    Reply,
    Sleep,
    Step,
    attempt,
)
from asyncpoll.client.guard import Guard
from asyncpoll.client.hosts import Host
from asyncpoll.client.pauses import Chance, backoff, spread
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.questions import Heard, Question
from asyncpoll.client.redaction import place
from asyncpoll.client.troubles import Kind, Trouble, trouble_with
from asyncpoll.contract import READ_TIMEOUT_MARGIN_MS

# The one more try after that comes at a random moment up to this.
_REUSE_PAUSE_SECONDS: Final = 1.0
# The last hold ends this long before the lifetime, so that its answer can still travel.
_TRAVEL_SECONDS: Final = 0.5
# Whatever a server says: with less, every hold that runs out would be taken for a silent gateway.
_LEAST_MARGIN_SECONDS: Final = 1.0
_ATTEMPTS_KEPT: Final = 100
_TOO_MANY_REQUESTS: Final = 429

N = TypeVar("N")
V = TypeVar("V")


class Conversation(Generic[N, V]):
    """One question and the answers to it, from `begin` until Done, Instead or GiveUp. A driver carries out the steps.

    Its news are `N`, and `value` is what was found out at the end. `attempts` are the last requests.
    """

    def __init__(
        self,
        question: Question,
        policy: PollPolicy,
        host: Host,
        *,
        base_url: str = "",
        lifetime: float | None = None,
        on_stale: OnStale = "raise",
        chance: Chance = random.random,
    ) -> None:
        self.attempts: deque[Attempt] = deque(maxlen=_ATTEMPTS_KEPT)
        self.value: V
        self._question = question
        self._policy = policy
        self._host = host
        self._base_url = base_url
        self._lifetime = question.patience(policy) if lifetime is None else given.lifetime(lifetime)
        self._on_stale = given.on_stale(on_stale)
        self._chance = chance
        self._guard = Guard(policy, chance)
        self._steps: deque[Step] = deque()
        self._deadline = 0.0
        self._asked: Ask | None = None
        self._asked_at = self._hold = self._slept = 0.0
        self._errors = self._busy = 0
        self._had_answer = self._cautious = self._second_try = self._awaits_turn = False
        self._margin = READ_TIMEOUT_MARGIN_MS / 1000

    @contextmanager
    def among_its_host(self) -> Iterator[None]:
        """While it lasts, it counts among the waits of its host."""
        rate = 1 / max(1.0, self._policy.hold_seconds) if self._question.holds else 0.0
        self._host.enter(rate)
        try:
            yield
        finally:
            if self._awaits_turn:
                self._host.return_turn()
            self._host.leave(rate)

    def begin(self, now: float) -> Step:
        """The first step."""
        self._deadline = now + self._lifetime
        return self._ask(now) if self._question.unfinished else self._done(None)

    def next(self, event: Event, now: float) -> Step:
        """The next step, after what the last one led to: a reply, a failure, or nothing."""
        if event is not None and self._asked is not None:
            reason, asked = self._take(event, now), self._asked
            self.attempts.append(attempt(asked, event, self._base_url, reason, self._next_in(now)))
        if not self._steps and now < self._deadline:
            return self._ask(now)
        if not self._steps:
            self._steps.append(self._too_late(f"after {self._lifetime:g} s"))
        step = self._steps.popleft()
        if isinstance(step, GiveUp | Instead):
            step.error.attempts = tuple(self.attempts)
        return step

    def _next_in(self, now: float) -> float | None:
        """Seconds until the next request, or None if this was the last."""
        ends = any(isinstance(step, Done | GiveUp | Instead) for step in self._steps)
        return None if ends or now + self._slept >= self._deadline else self._slept

    def _ask(self, now: float) -> Step:
        """However short the lifetime, there is one request."""
        left = max(self._deadline - now, 0.0 if self._asked else _TRAVEL_SECONDS)
        self._hold = self._hold_for(left)
        buster = f"{int(self._chance() * 0xFFFFFFFF):08x}" if self._guard.instant else None
        read = self._hold + self._margin
        total = min(left, read + self._policy.transfer_seconds)
        self._asked = Ask(
            request=self._question.request(self._hold, buster),
            read_seconds=min(read, total),
            total_seconds=total,
            number=self._asked.number + 1 if self._asked else 1,
            delay_before=self._slept,
            on_new_connection=self._second_try,
        )
        self._asked_at, self._slept, self._awaits_turn = now, 0.0, False
        return self._asked

    def _hold_for(self, left: float) -> float:
        """What is left of the lifetime, the policy, the gateway and the question bound it; after an error it is 0."""
        if not self._question.holds or self._cautious:
            return 0.0
        bounds = (self._policy.hold_seconds, self._host.hold_ceiling, self._question.longest_hold())
        return max(0.0, min(left - _TRAVEL_SECONDS, *(one for one in bounds if one is not None)))

    def _take(self, event: Reply | Failure, now: float) -> str | None:
        """Plan what follows; gives what was wrong."""
        if self._died_on_reuse(event):
            self._second_try = True
            self._retry(self._chance() * _REUSE_PAUSE_SECONDS, now)
            return "the connection had been closed meanwhile; once more on a new one"
        self._second_try = False
        self._learn_from(event)
        trouble = trouble_with(
            event, self._what(), ours=self._question.ours, had_answer=self._had_answer
        )
        if trouble is None and isinstance(event, Reply):
            trouble = self._take_answer(event, now)
        if trouble is None:
            return None
        self._take_trouble(trouble, event, now)
        return trouble.reason

    def _died_on_reuse(self, event: Reply | Failure) -> bool:
        return isinstance(event, Failure) and event.died_on_reuse and not self._second_try

    def _learn_from(self, event: Reply | Failure) -> None:
        """How long the gateway lets a request be held."""
        age = self._cut_at(event)
        if age is not None and self._hold:
            self._host.was_cut(age, self._asked_at)
        elif isinstance(event, Reply):
            self._host.survived(event.seconds)

    def _cut_at(self, event: Reply | Failure) -> float | None:
        """The age at which somebody between us and the server lost patience, or None."""
        if isinstance(event, Reply):
            return event.seconds if event.status >= 500 and not problem_in(event) else None
        if event.kind is FailureKind.CUT:
            return event.seconds
        # Dropped without a word: nothing came in all the time that the server may take.
        dropped = event.kind is FailureKind.SILENT and event.seconds >= self._hold + self._margin
        return self._hold if dropped else None

    def _take_answer(self, reply: Reply, now: float) -> Trouble | None:
        try:
            document = document_in(reply)
            heard = self._question.heard(document, reply.body)
        except Unreadable as error:
            return Trouble(Kind.ERROR, f"{reply.status} with an answer that can't be used: {error}")
        self._errors = self._busy = 0
        self._had_answer, self._cautious = True, False
        self._learn_margin(document)
        self._plan(heard, self._pause_after(heard, reply.seconds, document), now)
        return None

    def _plan(self, heard: Heard, pause: float, now: float) -> None:
        if heard.news:
            self._steps.append(News(heard.news))
        if heard.done:
            self._steps.append(self._done(heard.value))
        elif heard.stuck is not None and self._on_stale != "retry":
            self._steps.append(self._stale(heard.stuck))
        elif self._guard.rollovers > self._policy.rollover_budget:
            self._steps.append(self._too_late(f"after {self._guard.rollovers} holds without news"))
        else:
            self._pause(pause, now)

    def _done(self, value: Any) -> Step:
        self.value = value
        return Done(value)

    def _stale(self, error: StaleResponseError) -> Step:
        """The caller has said what is to be done about it."""
        return Instead(self._on_stale, error) if callable(self._on_stale) else GiveUp(error)

    def _pause_after(self, heard: Heard, seconds: float, document: Mapping[str, Any]) -> float:
        if heard.fresh:
            self._guard.news()
            return heard.pause
        granted = milliseconds(document, "hold_granted_ms")
        held = self._hold if granted is None else granted / 1000
        return self._guard.pause(heard.pause, seconds, held)

    def _learn_margin(self, document: Mapping[str, Any]) -> None:
        """How much longer than the hold the server wants us to be patient."""
        timeout = milliseconds(document, "client_read_timeout_ms")
        granted = milliseconds(document, "hold_granted_ms")
        if timeout is not None and granted is not None and timeout > granted:
            self._margin = max(_LEAST_MARGIN_SECONDS, (timeout - granted) / 1000)

    def _take_trouble(self, trouble: Trouble, event: Reply | Failure, now: float) -> None:
        """429 and 503 have a budget of their own. A 429 wants longer holds, so it does not make the next one short."""
        if trouble.error is not None:
            self._steps.append(GiveUp(trouble.error))
        elif trouble.kind is Kind.BUSY:
            self._busy += 1
            status = event.status if isinstance(event, Reply) else None
            self._cautious = status != _TOO_MANY_REQUESTS
            self._back_off(trouble, self._busy, self._policy.busy_budget, Busy, now)
        else:
            self._errors += 1
            self._cautious = True
            self._back_off(trouble, self._errors, self._policy.error_budget, Unreachable, now)

    def _back_off(
        self, trouble: Trouble, times: int, budget: int, error: type[Unreachable], now: float
    ) -> None:
        if times > budget:
            words = f"{self._what()} failed {times} times in a row; the last time: {trouble.reason}"
            self._steps.append(GiveUp(error(f"{words}; {self._question.remedy}.")))
            return
        base, asked = self._policy.base_delay, trouble.retry_after
        if asked is None:
            self._retry(backoff(times - 1, base, self._policy.max_delay, self._chance), now)
        else:
            self._retry(spread(max(asked, base), base, self._chance), now)

    def _retry(self, pause: float, now: float) -> None:
        """After a pause, and when it is this wait's turn among all that retry at this host."""
        self._awaits_turn = True
        self._pause(pause + self._host.retry_turn(now), now)

    def _pause(self, seconds: float, now: float) -> None:
        """Never beyond what is left of the lifetime."""
        seconds = min(seconds, max(0.0, self._deadline - now))
        self._slept += seconds
        if seconds > 0:
            self._steps.append(Sleep(seconds))

    def _too_late(self, reason: str) -> Step:
        question = self._question
        if question.at_last is not None:
            return self._done(question.at_last)
        if not question.waits:
            last = self.attempts[-1].error if self.attempts else "nothing was sent"
            return GiveUp(
                Unreachable(f"{self._what()} did not succeed {reason}: {last}; {question.remedy}.")
            )
        return GiveUp(
            PollLifetimeExceeded(
                next(iter(question.unfinished), question.about),
                question.last,
                reason=reason,
                attempt_count=self._asked.number if self._asked else 0,
                unfinished=question.unfinished,
                again=question.again,
            )
        )

    def _what(self) -> str:
        """The request, but for what nobody should read."""
        if self._asked is None:
            return self._question.about
        return f"{self._asked.request.method} {self._base_url}{place(self._asked.request.path)}"
