"""Many waits at one host whose server dies and comes back, in a world where time costs nothing."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from asyncpoll.client.conversation import Conversation
from asyncpoll.client.exchange import Ask, Event, Failure, FailureKind, News, Reply, Sleep, Step
from asyncpoll.client.hosts import Host
from asyncpoll.client.policy import PollPolicy
from asyncpoll.client.questions import UntilOver
from asyncpoll.client.testing import Received, answer, still_running

TASK = "t1"
_NETWORK_SECONDS = 0.001


class Wait(Protocol):
    """What takes answers and says what to do next."""

    def begin(self, now: float) -> Step: ...
    def next(self, event: Event, now: float) -> Step: ...


@dataclass(frozen=True, slots=True)
class Outage:
    """When the server is not there."""

    begin: float
    end: float


class Naive:
    """A client that asks again at once when there was no answer."""

    def __init__(self, like: Conversation) -> None:
        self._like = like
        self._failed = False

    def begin(self, now: float) -> Step:
        """As anybody."""
        return self._like.begin(now)

    def next(self, event: Event, now: float) -> Step:
        """The same request once more, a hundredth of a second after there was nobody."""
        if isinstance(event, Failure):
            self._failed = True
            return Sleep(0.01)
        if self._failed:
            self._failed = False
            return self._like.begin(now)
        return self._like.next(event, now)


def requests_a_second(
    waits: int, hold: float, outage: Outage, until: float, seed: int, naive: bool = False
) -> list[int]:
    """How many requests were sent in each second, over all waits."""
    world = _World(waits, hold, outage, seed, naive)
    world.run(until)
    return [world.sent[second] for second in range(int(until))]


class _World:
    def __init__(self, waits: int, hold: float, outage: Outage, seed: int, naive: bool) -> None:
        self.sent: Counter[int] = Counter()
        self._random = random.Random(seed)
        self._outage = outage
        self._order = count()
        self._due: list[tuple[float, int, int, Event | str]] = []
        host, policy = Host(), PollPolicy(hold_seconds=hold, lifetime_seconds=1e6)
        self._waits: list[Wait] = []
        for number in range(waits):
            conversation = Conversation(UntilOver(TASK), policy, host, chance=self._random.random)
            host.enter(1 / hold)
            self._waits.append(Naive(conversation) if naive else conversation)
            self._later(self._random.random() * hold, number, "begin")

    def run(self, until: float) -> None:
        """One event after the other."""
        while self._due:
            now, _, number, event = heapq.heappop(self._due)
            if now >= until:
                return
            wait = self._waits[number]
            step = wait.begin(now) if event == "begin" else wait.next(event, now)  # type: ignore[arg-type]
            while isinstance(step, News):
                step = wait.next(None, now)
            self._carry_out(step, number, now)

    def _carry_out(self, step: Step, number: int, now: float) -> None:
        if isinstance(step, Sleep):
            return self._later(now + step.seconds, number, None)
        assert isinstance(step, Ask), step
        self.sent[int(now)] += 1
        if self._outage.begin <= now < self._outage.end:
            seconds = _NETWORK_SECONDS
            event: Event = Failure(FailureKind.UNCONNECTED, "refused", seconds)
        else:
            event, seconds = self._served(step, now)
        return self._later(now + seconds, number, event)

    def _served(self, ask: Ask, now: float) -> tuple[Event, float]:
        query = dict(ask.request.query)
        hold = float(query["max_hold_seconds"]) if query["client_known_version"] == "1" else 0.0
        granted = hold * (1 - self._random.random() / 16)
        seconds = granted + _NETWORK_SECONDS
        if now < self._outage.begin < now + seconds:
            seconds = self._outage.begin - now
            return Failure(FailureKind.CUT, "cut", seconds), seconds
        backoff = self._random.uniform(50, 150) if hold else self._random.uniform(1000, 1500)
        rolled_over = still_running(1, backoff_ms=round(backoff))
        act = rolled_over if query["client_known_version"] == "1" else answer(version=1)
        received = Received(
            "GET", f"/tasks/{TASK}/long_poll?max_hold_seconds={hold}", {}, b"", 0, 1
        )
        _, _, body = act.bytes_for(received).partition(b"\r\n\r\n")
        return Reply(200, {}, body, seconds), seconds

    def _later(self, when: float, number: int, event: Any) -> None:
        heapq.heappush(self._due, (when, next(self._order), number, event))
