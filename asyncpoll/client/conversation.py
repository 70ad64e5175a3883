"""The rules of waiting, without I/O: an answer or a failure and the time go in, the next step comes out."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from asyncpoll.client.answer import Unreadable, milliseconds
from asyncpoll.client.errors import (
    AsyncpollError,
    Busy,
    PollLifetimeExceeded,
    Redirected,
    Refused,
    ResponseTooLarge,
    Unreachable,
)
from asyncpoll.client.exchange import (
    Ask,
    Attempt,
    Done,
    Event,
    Failure,
    FailureKind,
    GiveUp,
    News,
    Reply,
    Sleep,
    Step,
)
from asyncpoll.client.hosts import Host
from asyncpoll.client.pauses import Chance, backoff, retry_after, spread
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.questions import Heard, Question, refusal
from asyncpoll.contract import READ_TIMEOUT_MARGIN_MS

# A server that closes an idle connection may do it just as the next request leaves: no sign of trouble, if this quick.
DEAD_ON_REUSE_SECONDS: Final = 0.2
# The moment of the one extra try after that.
_REUSE_PAUSE_SECONDS: Final = 1.0
# The last hold ends this long before the lifetime, so that its answer can still travel.
_TRAVEL_SECONDS: Final = 0.5
# Answers at once, one after the other, that told nothing: so many are let pass before we slow down by ourselves.
_BURST: Final = 2
# A hint of at least this much is no invitation to a hot loop.
_SLOW_HINT_SECONDS: Final = 0.25
_ATTEMPTS_KEPT: Final = 100
_BUSY: Final = frozenset({429, 503})
_PASSING: Final = frozenset({408, 425})
_GATEWAY_GAVE_UP: Final = frozenset({502, 504})


class Conversation:
    """One question and the answers to it, from `begin` until Done or GiveUp. A driver carries out the steps."""

    def __init__(
        self,
        question: Question,
        policy: PollPolicy,
        host: Host,
        *,
        base_url: str = "",
        lifetime: float | None = None,
        raise_when_stale: bool = True,
        chance: Chance = random.random,
    ) -> None:
        self.attempts: deque[Attempt] = deque(maxlen=_ATTEMPTS_KEPT)
        self.value: Any = None
        self._question = question
        self._policy = policy
        self._host = host
        self._base_url = base_url
        self._lifetime = policy.lifetime_seconds if lifetime is None else lifetime
        self._raise_when_stale = raise_when_stale
        self._chance = chance
        self._steps: deque[Step] = deque()
        self._deadline = 0.0
        self._asked: Ask | None = None
        self._asked_at = 0.0
        self._hold = 0.0
        self._number = 0
        self._slept = 0.0
        self._errors = self._busy = self._rollovers = self._instant = 0
        self._had_answer = self._cautious = self._second_try = False
        self._margin = READ_TIMEOUT_MARGIN_MS / 1000

    @contextmanager
    def among_its_host(self) -> Iterator[None]:
        """While it lasts, it counts among the waits of its host."""
        rate = 1 / max(1.0, self._policy.hold_seconds) if self._question.holds else 0.0
        self._host.enter(rate)
        try:
            yield
        finally:
            self._host.leave(rate)

    def begin(self, now: float) -> Step:
        """The first step."""
        self._deadline = now + self._lifetime
        return self._ask(now) if self._question.unfinished else Done(None)

    def next(self, event: Event, now: float) -> Step:
        """The next step, after what the last one led to: a reply, a failure, or nothing."""
        if event is not None:
            trouble = self._take(event, now)
            self._record(event, trouble)
        if self._steps:
            return self._steps.popleft()
        if now >= self._deadline:
            return GiveUp(self._too_late(f"after {self._lifetime:g} s"))
        return self._ask(now)

    # -- asking

    def _ask(self, now: float) -> Step:
        left = max(self._deadline - now, _TRAVEL_SECONDS if self._number == 0 else 0.0)
        self._hold = self._hold_for(left)
        request = self._question.request(self._hold, self._buster())
        self._number += 1
        read = self._hold + self._margin
        total = min(left, read + self._policy.transfer_seconds)
        self._asked = Ask(
            request, min(read, total), total, self._number, self._slept, self._second_try
        )
        self._asked_at, self._slept = now, 0.0
        return self._asked

    def _hold_for(self, left: float) -> float:
        if not self._question.holds or self._cautious:
            return 0.0
        bounds = (self._policy.hold_seconds, self._host.hold_ceiling, self._question.longest_hold())
        return max(0.0, min(left - _TRAVEL_SECONDS, *(one for one in bounds if one is not None)))

    def _buster(self) -> str | None:
        """A word that makes the URL new, once a cache is suspected to have answered."""
        return f"{int(self._chance() * 0xFFFFFFFF):08x}" if self._instant else None

    # -- listening

    def _take(self, event: Reply | Failure, now: float) -> str | None:
        """Plan what follows; gives what was wrong, for hooks."""
        if isinstance(event, Failure):
            return self._take_failure(event, now)
        self._second_try = False
        if 200 <= event.status < 300:
            return self._take_answer(event, now)
        if event.status in _GATEWAY_GAVE_UP:
            self._was_cut(event.seconds)
        if event.status in _BUSY:
            return self._busy_again(event, now)
        return self._take_problem(event, now)

    def _take_failure(self, failure: Failure, now: float) -> str:
        if failure.kind is FailureKind.TOO_LARGE:
            return self._end(ResponseTooLarge(f"{self._what()}: {failure.detail}"))
        cut = failure.kind is FailureKind.CUT
        if (
            cut
            and failure.reused
            and failure.seconds < DEAD_ON_REUSE_SECONDS
            and not self._second_try
        ):
            self._second_try = True
            self._pause(self._chance() * _REUSE_PAUSE_SECONDS + self._host.retry_turn(now), now)
            return failure.detail
        self._second_try = False
        if cut:
            self._was_cut(failure.seconds)
        return self._error(failure.detail, None, now)

    def _take_problem(self, reply: Reply, now: float) -> str:
        problem = _problem(reply)
        reason = f"{reply.status} {problem.get('detail') or 'without a problem document'}"
        if reply.status < 400:
            return self._end(_redirected(self._what(), reply))
        # A page that is not ours, from where ours came before, is a gateway's while something is being replaced.
        passing = not problem and self._had_answer and reply.status in (404, 405)
        if reply.status >= 500 or reply.status in _PASSING or passing:
            return self._error(reason, reply, now)
        if not problem and self._question.ours:
            problem = {"detail": "that is no answer of asyncpoll; is the base URL right?"}
        return self._end(refusal(reply.status, problem, self._what()))

    def _take_answer(self, reply: Reply, now: float) -> str | None:
        try:
            document = _document(reply)
            heard = self._question.heard(document, reply.body)
        except Unreadable as error:
            return self._error(
                f"{reply.status} with an answer that can't be used: {error}", reply, now
            )
        self._errors = self._busy = 0
        self._had_answer, self._cautious = True, False
        self._host.survived(reply.seconds)
        self._learn_margin(document)
        self._plan(heard, self._guarded(heard, reply.seconds, document), now)
        return None

    def _plan(self, heard: Heard, pause: float, now: float) -> None:
        if heard.news:
            self._steps.append(News(heard.news))
        if heard.done:
            self.value = heard.value
            self._steps.append(Done(heard.value))
        elif heard.stuck is not None and self._raise_when_stale:
            self._end(heard.stuck)
        elif self._rollovers > self._policy.rollover_budget:
            self._end(self._too_late(f"after {self._rollovers} holds without news"))
        else:
            self._pause(pause, now)

    def _guarded(self, heard: Heard, seconds: float, document: Mapping[str, Any]) -> float:
        """The server's pause; a longer one if answers that tell nothing come at once, as out of a proxy's cache."""
        if heard.fresh:
            self._rollovers = self._instant = 0
            return heard.pause
        self._rollovers += 1
        granted = milliseconds(document, "hold_granted_ms")
        held = self._hold if granted is None else granted / 1000
        if heard.pause >= _SLOW_HINT_SECONDS or (held and seconds >= held / 2):
            self._instant = 0
            return heard.pause
        self._instant += 1
        if self._instant <= _BURST:
            return heard.pause
        slow = self._instant - _BURST - 1
        return backoff(slow, self._policy.base_delay, self._policy.max_delay, self._chance)

    def _learn_margin(self, document: Mapping[str, Any]) -> None:
        """How much longer than the hold the server wants us to be patient."""
        timeout = milliseconds(document, "client_read_timeout_ms")
        granted = milliseconds(document, "hold_granted_ms")
        if timeout is not None and granted is not None and timeout > granted:
            self._margin = (timeout - granted) / 1000

    def _was_cut(self, age: float) -> None:
        if self._hold:
            self._host.was_cut(age, self._asked_at)

    # -- trouble

    def _busy_again(self, reply: Reply, now: float) -> str:
        """429 or 503. A 429 wants longer holds, so it does not make the next one short."""
        reason = f"{reply.status} {_problem(reply).get('detail') or 'without a problem document'}"
        self._busy += 1
        self._cautious = reply.status != 429
        if self._busy > self._policy.busy_budget:
            return self._end(
                Busy(
                    f"{self._what()} was refused {self._busy} times in a row: {reason}",
                    self.attempts,
                )
            )
        self._back_off(self._busy, reply, now)
        return reason

    def _error(self, reason: str, reply: Reply | None, now: float) -> str:
        self._errors += 1
        self._cautious = True
        if self._errors > self._policy.error_budget:
            return self._end(
                Unreachable(
                    f"{self._what()} failed {self._errors} times in a row: {reason}", self.attempts
                )
            )
        self._back_off(self._errors, reply, now)
        return reason

    def _back_off(self, failures: int, reply: Reply | None, now: float) -> None:
        policy = self._policy
        asked = None if reply is None else retry_after(reply.headers)
        if asked is None:
            pause = backoff(failures - 1, policy.base_delay, policy.max_delay, self._chance)
        else:
            pause = spread(max(asked, policy.base_delay), policy.base_delay, self._chance)
        self._pause(pause + self._host.retry_turn(now), now)

    def _pause(self, seconds: float, now: float) -> None:
        """Never beyond what is left of the lifetime."""
        seconds = min(seconds, max(0.0, self._deadline - now))
        self._slept += seconds
        if seconds > 0:
            self._steps.append(Sleep(seconds))

    def _end(self, error: AsyncpollError) -> str:
        self._steps.append(GiveUp(error))
        return str(error)

    def _too_late(self, reason: str) -> AsyncpollError:
        last = self.attempts[-1] if self.attempts else None
        if not self._question.waits:
            trouble = last.error if last else "nothing was sent"
            return Unreachable(f"{self._what()} did not succeed {reason}: {trouble}", self.attempts)
        return PollLifetimeExceeded(
            self._question.unfinished[0] if self._question.unfinished else self._question.about,
            self._question.last,
            reason=reason,
            attempts=self.attempts,
            attempt_count=self._number,
            unfinished=self._question.unfinished,
        )

    # -- words

    def _what(self) -> str:
        """The request without its query, which may hold what nobody should read."""
        if self._asked is None:
            return self._question.about
        path = self._asked.request.path.partition("?")[0]
        return f"{self._asked.request.method} {self._base_url}{path}"

    def _record(self, event: Reply | Failure, trouble: str | None) -> None:
        if self._asked is None:
            return
        request = self._asked.request
        query = "&".join(f"{name}={value}" for name, value in request.query)
        self.attempts.append(
            Attempt(
                url=f"{self._base_url}{request.path}" + (f"?{query}" if query else ""),
                number=self._asked.number,
                kind=request.kind,
                delay_before=self._asked.delay_before,
                status=event.status if isinstance(event, Reply) else None,
                seconds=event.seconds,
                error=trouble,
                method=request.method,
            )
        )


def _document(reply: Reply) -> Mapping[str, Any]:
    """The JSON object in an answer. Raises Unreadable."""
    try:
        document = json.loads(reply.body) if reply.body else {}
    except (ValueError, RecursionError) as error:
        kind = reply.headers.get("content-type", "no content type")
        raise Unreadable(f"it is no JSON but {kind}") from error
    if not isinstance(document, dict):
        raise Unreadable(f"it is {type(document).__name__} and not an object")
    return document


def _problem(reply: Reply) -> Mapping[str, Any]:
    """The problem document in an answer; empty if there is none."""
    try:
        document = _document(reply)
    except Unreadable:
        return {}
    return document if "type" in document and "status" in document else {}


def _redirected(what: str, reply: Reply) -> Refused:
    """Where to, but for its query, which may hold what nobody should read."""
    place = reply.headers.get("location", "nowhere").partition("?")[0]
    return Redirected(
        f"{what} was answered {reply.status}, a redirect to {place}. Redirects are not followed, since the token "
        "would go along; give the final address as base URL.",
        reply.status,
    )
