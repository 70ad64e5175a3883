"""The question put to an endpoint that only short-polls, and the rhythm of asking it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from asyncpoll.client.documents import Unreadable
from asyncpoll.client.errors import Misused, StaleResponseError
from asyncpoll.client.exchange import Request
from asyncpoll.client.given import number, planned, seconds, texts
from asyncpoll.client.questions import Heard, OfOne
from asyncpoll.client.redaction import place

_GROWTH_OF_A_PLAN: Final = 2.0
_GROWS: Final = "give a number from 1"
# So many answers in a row that are the same byte for byte are no coincidence.
_SAME: Final = 3


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The first polls a base interval apart, then growing to a cap; seconds."""

    interval: float = 0.4
    max_interval: float = 5.0
    growth: float = 1.8
    first_polls: int = 5

    def __post_init__(self) -> None:
        seconds("interval", self.interval)
        seconds("max_interval", self.max_interval)
        if not 0 < self.interval <= self.max_interval:
            raise Misused(
                f"interval is {self.interval} and max_interval {self.max_interval}; give 0 < interval <= max_interval."
            )
        if number("growth", self.growth, _GROWS) < 1:
            raise Misused(f"growth is {self.growth}; {_GROWS}.")

    @classmethod
    def planned(cls, plan: object, given: Rhythm) -> Rhythm:
        """What a plan's entry says, and what was given where it does not know. Raises Misused."""
        if plan is None:
            return given
        interval = planned(plan, "first_interval_seconds") or given.interval
        longest = planned(plan, "max_interval_seconds") or given.max_interval
        polls = planned(plan, "first_polls")
        return cls(
            interval,
            max(interval, longest),
            planned(plan, "growth") or _GROWTH_OF_A_PLAN,
            given.first_polls if polls is None else int(polls),
        )

    def pause(self, polls: int) -> float:
        """Seconds after that many polls."""
        grown = max(0, polls - self.first_polls)
        # By logarithms, as the power of a large growth overflows long before it is asked for.
        if grown * math.log(self.growth) >= math.log(self.max_interval / self.interval):
            return self.max_interval
        return min(self.max_interval, self.interval * self.growth**grown)


class ShortPoll(OfOne):
    """Asks until the status is a terminal one."""

    holds = ours = False
    again = "Wait again, or with a longer timeout"

    def __init__(self, url: str, rhythm: Rhythm, terminal: Iterable[str], heartbeat: bool) -> None:
        super().__init__(place(url))
        self._request = Request("poll", "GET", url.partition("#")[0])
        self._rhythm = rhythm
        self._terminal = frozenset(
            word.upper() for word in texts("terminal", terminal, "words that end it")
        )
        self._armed = heartbeat
        self._polls = 0
        self._digest = b""
        self._same = 0

    def request(self, hold: float, buster: str | None) -> Request:
        """The same each time: a foreign endpoint may refuse a parameter that it does not know."""
        return self._request

    def heard(self, document: Mapping[str, Any], body: bytes) -> Heard:
        """Over, stuck, or not yet."""
        status = _status(document)
        self._polls += 1
        self.last = document
        return Heard(
            news=(document,) if self._is_new(body) else (),
            done=status in self._terminal,
            value=document,
            pause=self._rhythm.pause(self._polls),
            stuck=self._stuck(document),
        )

    def _is_new(self, body: bytes) -> bool:
        digest = hashlib.sha256(body).digest()
        if digest == self._digest:
            self._same += 1
            return False
        self._armed = self._armed or bool(self._digest)
        self._digest, self._same = digest, 1
        return True

    def _stuck(self, document: Mapping[str, Any]) -> StaleResponseError | None:
        if not self._armed or self._same < _SAME:
            return None
        return StaleResponseError(
            f"{self.about} gave the same answer {self._same} times in a row, status {_status(document)}. Look at what "
            "runs it; or wait on with on_stale='retry', or give a fallback of your own.",
            document,
        )


def _status(document: Mapping[str, Any]) -> str:
    """The status in upper case. Raises Unreadable where there is none."""
    status = document.get("status", document.get("state"))
    if not isinstance(status, str):
        raise Unreadable(f"it has no status (found {status!r:.80})")
    return status.upper()
