"""Clients that go on and on, in the load generator's process."""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.fleet.scenario import MEAN_SECONDS
from bench.fleet.ways import HOLD_SECONDS, Way
from bench.generator import Client, Load

STORED_VERSION = 1
"""What the answer to a submission tells."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What to do. `known` has, for each connection, the tasks and their versions; times are of the monotonic clock."""

    way: Way
    known: Sequence[Mapping[str, int]]
    successors: Mapping[str, str]
    begin_at: float
    end_at: float


@dataclass(slots=True)
class Talk:
    """What was said. Times of the monotonic clock."""

    sent: list[float] = field(default_factory=list)
    """Of each request."""
    first: list[float] = field(default_factory=list)
    """Of each task that was asked for the first time."""
    idle: list[float] = field(default_factory=list)
    """Of each answer that told nothing new."""
    told: dict[tuple[str, int], float] = field(default_factory=dict)
    """When a client knew of a version of a task."""
    errors: list[tuple[float, str]] = field(default_factory=list)


def rest_of_a_hold(chance: float) -> float:
    """What is left of a hold that is looked at any time, for a `chance` between 0 and 1: nobody began all at one time.

    Tasks end at a rate of 1 / MEAN_SECONDS, and a hold with its task, so that fewer are old than young: their ages have
    a density of e^(-age / MEAN_SECONDS), up to HOLD_SECONDS.
    """
    ended = 1 - math.exp(-HOLD_SECONDS / MEAN_SECONDS)
    return max(0.1, HOLD_SECONDS + MEAN_SECONDS * math.log(1 - chance * ended))


class Clients(Load):
    """Besides the commands of every load: `converse`."""

    def converse(self, assignment: Assignment) -> Talk:
        """Ask, read, pause and ask again on each connection until the end."""
        return _Conversation(self, assignment).go_on()


class _Conversation:
    def __init__(self, load: Load, assignment: Assignment) -> None:
        self._load = load
        self._way = assignment.way
        self._assignment = assignment
        self._known = [dict(known) for known in assignment.known]
        self._new = [len(known) for known in assignment.known]
        self._due = [
            (assignment.begin_at + random.uniform(0, self._beat()), index)
            for index in range(len(assignment.known))
        ]
        heapq.heapify(self._due)
        self._holds = [rest_of_a_hold(random.random()) for _ in assignment.known]
        self._talk = Talk()

    def _beat(self) -> float:
        return self._way.every_seconds or 1.0

    def go_on(self) -> Talk:
        while (now := time.monotonic()) < self._assignment.end_at:
            self._ask_all_due(now)
            until = min(self._assignment.end_at, self._due[0][0] if self._due else float("inf"))
            for key, _ in self._load.selector.select(max(0.0, until - time.monotonic())):
                client = key.data
                if client.read():
                    self._take(client)
        return self._talk

    def _ask_all_due(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            at, index = heapq.heappop(self._due)
            self._ask(index)
            if self._way.every_seconds:
                heapq.heappush(self._due, (at + self._way.every_seconds, index))

    def _ask(self, index: int) -> None:
        at = time.monotonic()
        client = self._load.clients[index]
        # A server that is slower than the beat is asked at the next one: it shows as requests that are missing.
        if client.ended or client.asked:
            return
        hold, self._holds[index] = self._holds[index], HOLD_SECONDS
        client.socket.sendall(self._way.request(self._known[index], hold))
        client.asked = True
        self._talk.sent.append(at)
        self._talk.first += [at] * self._new[index]
        self._new[index] = 0

    def _take(self, client: Client) -> None:
        head, _, body = bytes(client.received).partition(b"\r\n\r\n")
        client.received.clear()
        client.asked = False
        pause = 1.0
        if client.ended:
            self._load.selector.unregister(client.socket)
            self._fail("a lost connection")
        elif not head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 202")):
            self._fail(head.partition(b"\r\n")[0].decode())
        else:
            pause = self._learn(client.index, body)
        if not self._way.every_seconds:
            heapq.heappush(self._due, (time.monotonic() + pause, client.index))

    def _learn(self, index: int, body: bytes) -> float:
        """Take the news, and go on with the successor of a task that is over; the pause before the next request."""
        known = self._known[index]
        try:
            news, pause = self._way.read(body, known)
        except (ValueError, KeyError) as error:
            self._fail(f"{error}")
            return 1.0
        at = time.monotonic()
        if not news or not known:
            self._talk.idle.append(at)
        for one in news:
            self._talk.told[one.task, one.version] = at
            known[one.task] = one.version
            if one.is_over:
                del known[one.task]
                if not self._way.submits:
                    known[self._assignment.successors[one.task]] = STORED_VERSION
                self._new[index] += 1
        return pause

    def _fail(self, what: str) -> None:
        self._talk.errors.append((time.monotonic(), what))
