"""When a webhook that was not taken is sent again. Pure arithmetic."""

from __future__ import annotations

import random

from tasks_app.store import Attempt

_FIRST_SECONDS = 2.0
_LONGEST_SECONDS = 3_600.0
_GONE = 410
_FINAL = frozenset({f"HTTP {_GONE}", "TaskGone"})


def pause_after(
    attempt: Attempt, number: int, owed_seconds: float, most_seconds: float
) -> float | None:
    """Seconds to wait after attempt `number` failed; None: it is given up.

    Formula: min(1 h, 2 s · 2^(number - 1)), times a random factor in [0.5, 1]. Given up where that is later than
    `most_seconds` after the delivery became due, and for what more attempts can't change: 410, and a task that is gone.
    """
    if attempt.error in _FINAL:
        return None
    ceiling = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2 ** min(number - 1, 20))
    pause = ceiling * random.uniform(0.5, 1.0)
    return pause if owed_seconds + pause <= most_seconds else None
