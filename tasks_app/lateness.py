"""How late an event loop is: the mark of a process that is given more than it can do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from tasks_app import conf
from tasks_app.loops import Loop

BEAT_SECONDS = 0.25
# One burst, as when thousands are woken by one commit, makes a beat or two late and is over; this long it is no burst.
_MEMORY_SECONDS = 2.0
# One long freeze must not be remembered for longer than a short one that keeps coming back.
_MOST_TIMES = 2.0


@dataclass(slots=True)
class Lateness:
    """How late beats have been lately, in seconds: an average in which a beat counts by the time since the last.

    Formula: average += (late - average) · (1 - e^(-since / 2 s)).
    """

    seconds: float = 0.0

    def note(self, late: float, since: float) -> None:
        """A beat came `late`, `since` seconds after the one before."""
        self.seconds += (late - self.seconds) * (1 - math.exp(-since / _MEMORY_SECONDS))


class Beats(Loop):
    """Beats four times a second, and notes how late. `lags` while that is more than MAX_LAG_SECONDS.

    A subclass says what `turned()` means to it: called when that begins, and when it ends.
    """

    name = "pulse"

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lateness = Lateness()
        self._beat_at = clock()
        self.lags = False

    @property
    def late_seconds(self) -> float:
        """How late the event loop has been lately."""
        return self._lateness.seconds

    async def step(self) -> float:
        """One beat; returns the time to the next."""
        now, limit = self._clock(), conf.current().MAX_LAG_SECONDS
        since, self._beat_at = now - self._beat_at, now
        late = min(max(0.0, since - BEAT_SECONDS), limit * _MOST_TIMES)
        self._lateness.note(late, since)
        lagged, self.lags = self.lags, self.late_seconds > limit
        if self.lags != lagged:
            self.turned()
        return BEAT_SECONDS

    def turned(self) -> None:
        """It lags now, or does so no more."""
