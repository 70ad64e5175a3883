"""What a process has learnt of each host: how long its gateway lets a request be held, and whose turn a retry is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

# A cut below this age is no gateway's limit, but a server that is going down; a hold below it would be short polling.
SHORTEST_LIMIT_SECONDS: Final = 1.0
# Two ages are about the same within a tenth, and a quarter of a second for the timer's own coarseness.
_SAME_SHARE, _SAME_SECONDS = 0.1, 0.25
# How far below a gateway's limit a hold is asked for.
_SAFE_SHARE: Final = 0.75
# Retries a second, as a share of the requests a second that the same waits make when all is well. Each costs two
# requests (one that does not hold, one that does) beside the renewals of those that are back: 2 * 0.3 + 1 is well
# under twice the steady rate.
_RETRY_SHARE: Final = 0.3
# What a few waits may always do.
_LEAST_RETRIES_A_SECOND: Final = 2.0
_BURST: Final = 3


@dataclass(frozen=True, slots=True)
class _Cut:
    """A held request whose connection ended unanswered."""

    age: float
    at: float

    def matches(self, age: float) -> bool:
        return abs(age - self.age) <= _SAME_SECONDS + _SAME_SHARE * self.age


class Host:
    """The memory of one host. Times are those of a monotonic clock."""

    def __init__(self) -> None:
        self.hold_ceiling: float | None = None
        self._lock = Lock()
        self._cut: _Cut | None = None
        self._steady = 0.0
        self._turn = float("-inf")

    def enter(self, requests_a_second: float) -> None:
        """A wait begins that makes so many requests when all is well."""
        with self._lock:
            self._steady += requests_a_second

    def leave(self, requests_a_second: float) -> None:
        """It has ended."""
        with self._lock:
            self._steady = max(0.0, self._steady - requests_a_second)

    def retry_turn(self, now: float) -> float:
        """Seconds until a retry may go to this host, beside its own backoff: the retry budget of all waits together."""
        with self._lock:
            self._turn = max(self._turn, now - _BURST * self._gap) + self._gap
            return max(0.0, self._turn - now)

    def return_turn(self) -> None:
        """Somebody ended before its turn came: it is others'. Else the turns of short waits would run ahead of time."""
        with self._lock:
            self._turn -= self._gap

    @property
    def _gap(self) -> float:
        """Seconds between two retries."""
        return 1.0 / max(_LEAST_RETRIES_A_SECOND, _RETRY_SHARE * self._steady)

    def was_cut(self, age: float, sent_at: float) -> None:
        """A held request ended without an answer at that age.

        It counts as the gateway's doing from the second time on: at about the same age, and sent after the first had
        been cut. Many that are cut at one moment are a server that has died, which says nothing of their ages.
        """
        if age < SHORTEST_LIMIT_SECONDS:
            return
        with self._lock:
            known = self._cut
            if known is not None and sent_at < known.at:
                return
            if known is not None and known.matches(age):
                self._lower(min(age, known.age) * _SAFE_SHARE)
            self._cut = _Cut(age, sent_at + age)

    def survived(self, age: float) -> None:
        """A request was answered at that age: a cut before it was no limit."""
        with self._lock:
            if self._cut is not None and age > self._cut.age and not self._cut.matches(age):
                self._cut = None

    def _lower(self, seconds: float) -> None:
        self.hold_ceiling = min(seconds, self.hold_ceiling or seconds)


_hosts: dict[str, Host] = {}


class _Memory:
    on = True


_memory = _Memory()


def host_of(url: str) -> Host:
    """The memory of the host that a URL leads to, one for the whole process."""
    if not _memory.on:
        return Host()
    parts = urlsplit(url)
    return _hosts.setdefault(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower(), Host())


def forget_hosts() -> None:
    """Begin anew, as a test does."""
    _hosts.clear()


def remember_hosts(on: bool) -> None:
    """Begin anew, and learn something of hosts for longer than a wait or not: while time is skipped, each wait has a
    clock of its own, and what one has learnt means nothing to the next."""
    forget_hosts()
    _memory.on = on


if hasattr(os, "register_at_fork"):
    # The waits and the locks of a parent are not the child's.
    os.register_at_fork(after_in_child=forget_hosts)
