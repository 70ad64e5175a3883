"""Measures how long whatever stands in front of a server lets an answer wait. Nothing but the standard library."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

# Several at a time: one that is cut by accident, or slow, decides nothing.
_AT_ONCE = 3
# A hold that should be answered is tried again shorter so many times.
_MOST_TRIES = 3
# Longer than any answer needs once the hold is over.
_SPARE_SECONDS = 10.0


class ProbeFailed(RuntimeError):
    """Nothing could be measured. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One hold that was asked for, how long it took, and how it ended: a status, or what went wrong."""

    asked_seconds: float
    took_seconds: float
    ending: str

    @property
    def is_answered(self) -> bool:
        """True if the server's own answer came."""
        return self.ending == "200"


@dataclass(frozen=True, slots=True)
class Finding:
    """The longest hold that was answered each time; where and how longer ones were cut, if they were."""

    answered_seconds: float
    cut_seconds: float | None = None
    cut_by: str = ""

    @property
    def hold_seconds(self) -> float:
        """The MAX_HOLD_SECONDS to set."""
        return within(self.answered_seconds) if self.cut_seconds is None else self.answered_seconds


def within(limit_seconds: float) -> float:
    """A hold that fits into a limit with room for the way there and back: 25 s of 30. In half seconds, downward."""
    return max(0.5, limit_seconds * 5 / 6 // 0.5 * 0.5)


async def measure(
    url: str, ticket: str, most_seconds: float, say: Callable[[str], object]
) -> Finding:
    """Hold for `most_seconds` at `url`; if that is cut, find a hold that is not. Raises ProbeFailed.

    Takes as long as that, or twice that where something cuts in the end.
    """

    async def hold(seconds: float) -> Sequence[Probe]:
        say(f"Holding {_AT_ONCE} requests for {seconds:g} s ...")
        return await asyncio.gather(
            *(asyncio.to_thread(_ask, url, ticket, seconds) for _ in range(_AT_ONCE))
        )

    _check(await asyncio.to_thread(_ask, url, ticket, 0.0))
    cut = _earliest_cut(await hold(most_seconds))
    if cut is None:
        return Finding(most_seconds)
    for _ in range(_MOST_TRIES):
        seconds = within(cut.took_seconds)
        again = _earliest_cut(await hold(seconds))
        if again is None:
            return Finding(seconds, cut.took_seconds, cut.ending)
        cut = again
    raise ProbeFailed(
        f"Answers were cut ({cut.ending}) after different times, the last one after {cut.took_seconds:.1f} s; "
        "see to it that the server is not restarted meanwhile, and try again."
    )


def _earliest_cut(probes: Sequence[Probe]) -> Probe | None:
    cut = [probe for probe in probes if not probe.is_answered]
    return min(cut, key=lambda probe: probe.took_seconds, default=None)


def _check(first: Probe) -> None:
    match first.ending:
        case "200":
            return
        case "403":
            reason = "the server does not know the ticket: run this with the settings, and so the SECRET_KEY, that it has"
        case "404":
            reason = "asyncpoll's API is not there: give the address that clients use, up to where the project begins"
        case "503":
            reason = "the server is draining or full: try again when it is not"
        case ending:
            reason = f"it can't be reached ({ending})"
    raise ProbeFailed(f"Nothing was measured, as {reason}.")


def _ask(url: str, ticket: str, seconds: float) -> Probe:
    began = time.monotonic()
    try:
        ending = _ending(f"{url}?seconds={seconds:g}&ticket={ticket}", seconds + _SPARE_SECONDS)
    except (OSError, http.client.HTTPException, ValueError) as error:
        ending = str(error) or type(error).__name__
    return Probe(seconds, time.monotonic() - began, ending)


def _ending(url: str, timeout: float) -> str:
    parts = urlsplit(url)
    if parts.scheme == "https":
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.netloc, timeout=timeout, context=ssl.create_default_context()
        )
    else:
        connection = http.client.HTTPConnection(parts.netloc, timeout=timeout)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        response = connection.getresponse()
        body = response.read()
        if response.status == 200 and json.loads(body)["draining"]:
            return "the server went away"
        return str(response.status)
    finally:
        connection.close()
