"""How long to pause: pure arithmetic. `chance` gives a random number from 0 to 1."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

Chance = Callable[[], float]

# Beyond 2**32 a doubling has long met any cap; it only has to stay a float.
_MOST_DOUBLINGS = 32
# A Retry-After is spread by a quarter of itself, so that all who were told the same do not come back together.
_RETRY_AFTER_SPREAD = 0.25


def backoff(retry: int, base: float, most: float, chance: Chance) -> float:
    """Seconds before the retry that is number `retry` from 0: `min(most, base * 2**retry)` and up to as much again."""
    delay = min(most, base * 2.0 ** min(retry, _MOST_DOUBLINGS))
    return delay + delay * chance()


def spread(seconds: float, base: float, chance: Chance) -> float:
    """A Retry-After as it is obeyed: never earlier, and later by a random part."""
    return seconds + max(base, seconds * _RETRY_AFTER_SPREAD) * chance()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a Retry-After asks for, from now; None without one that can be read.

    A date is compared with the answer's own Date where there is one: the clocks of the two machines need not agree.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isdecimal() and text.isascii():
        return float(text[:12])
    asked = _timestamp(text)
    if asked is None:
        return None
    now = _timestamp(headers.get("date", ""))
    return max(0.0, asked - (time.time() if now is None else now))


def _timestamp(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
        value = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    return value if math.isfinite(value) else None
