"""How long a request is held, and when its client should ask again. Pure arithmetic."""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass

from asyncpoll.contract import READ_TIMEOUT_MARGIN_MS, Outcome
from tasks_app.errors import BadParameter

_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|-?\.[0-9]+([eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"[0-9]+")
# Beyond any version a row can have; a longer number is the same confusion and needs no bignum.
_HUGE_VERSION = 10**18
_SHORTEST_POLL_MS = 1_000
# Renewals of requests that began together spread out over this share of the hold.
_JITTER_SHARE = 1 / 16


@dataclass(frozen=True, slots=True)
class Window:
    """A granted hold, in seconds."""

    granted_seconds: float

    @property
    def granted_ms(self) -> int:
        """The hold as the client is told it."""
        return round(self.granted_seconds * 1000)

    @property
    def client_read_timeout_ms(self) -> int:
        """How long a client must wait before it calls the connection dead."""
        return self.granted_ms + READ_TIMEOUT_MARGIN_MS


def parse_seconds(text: str, name: str) -> float:
    """A hold asked for in a query. Raises BadParameter for what is negative, not finite or not a number."""
    if not _DECIMAL.fullmatch(text) or not math.isfinite(seconds := float(text)):
        raise BadParameter(name, text, "must be a finite number of seconds, for example 25")
    if seconds < 0:
        raise BadParameter(name, text, "must not be negative; 0 answers at once")
    return seconds


def parse_version(text: str, name: str) -> int:
    """A version that a client knows. Raises BadParameter for what is not a whole number from 0."""
    if not _DIGITS.fullmatch(text):
        raise BadParameter(
            name,
            text,
            "must be a whole number from 0: the `version` of the last answer, or nothing",
        )
    return int(text) if len(text) <= 18 else _HUGE_VERSION


def parse_milliseconds(text: str, name: str) -> int:
    """A pause asked for in a query. Raises BadParameter for what is not a whole number from 0."""
    if not _DIGITS.fullmatch(text):
        raise BadParameter(
            name, text, "must be a whole number of milliseconds from 0, for example 500"
        )
    return int(text) if len(text) <= 18 else _HUGE_VERSION


def parse_flag(text: str, name: str) -> bool:
    """A yes or no. Raises BadParameter for anything but true, false, 1 and 0."""
    known = {"true": True, "1": True, "false": False, "0": False}
    try:
        return known[text.lower()]
    except KeyError:
        raise BadParameter(name, text, "must be true or false") from None


def grant(asked_seconds: float, most_seconds: float) -> Window:
    """The hold to give: the smaller of the two, less a random part of up to 1/16.

    Jitter is only ever subtracted: added, it would break a ceiling that a gateway sets.
    """
    hold = min(asked_seconds, most_seconds)
    return Window(hold * (1 - _JITTER_SHARE * random.random()))


def backoff_ms(
    outcome: Outcome, granted_seconds: float, interval_seconds: float | None = None
) -> int:
    """How long the client should wait before it asks again, in milliseconds.

    `interval_seconds` is what the task's plan says of polls that are not held; those that are need none.
    """
    if outcome in (Outcome.CHANGED, Outcome.TERMINAL):
        return 0
    if outcome is Outcome.DRAINING:
        # Everybody that was held here comes back at once: spread over what another server takes to start.
        return random.randint(250, 3_000)
    if outcome is Outcome.SHED:
        return random.randint(2_000, 6_000)
    if granted_seconds == 0:
        shortest = max(_SHORTEST_POLL_MS, round((interval_seconds or 0.0) * 1000))
        return random.randint(shortest, shortest * 3 // 2)
    return random.randint(50, 150)
