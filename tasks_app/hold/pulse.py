"""How late the event loop is: the mark of a process that is given more than it can do."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from tasks_app import conf
from tasks_app.events import emit
from tasks_app.hold.admission import Admission, admission
from tasks_app.loops import Loop

_BEAT_SECONDS = 0.25
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


class Pulse(Loop):
    """Beats, and tells admission how late it did. While that is more than MAX_LAG_SECONDS, holds are shed."""

    name = "pulse"

    def __init__(
        self, told: Admission = admission, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._admission = told
        self._clock = clock
        self._lateness = Lateness()
        self._beat_at = clock()

    async def step(self) -> float:
        """One beat; returns the time to the next."""
        now, limit = self._clock(), conf.current().MAX_LAG_SECONDS
        since, self._beat_at = now - self._beat_at, now
        late = min(max(0.0, since - _BEAT_SECONDS), limit * _MOST_TIMES)
        was_lagging = self._lateness.seconds > limit
        self._lateness.note(late, since)
        self._admission.lag_seconds = self._lateness.seconds
        lags = self._lateness.seconds > limit
        if lags != was_lagging:
            emit("server.lags" if lags else "server.caught_up", lag_seconds=self._lateness.seconds)
        return _BEAT_SECONDS

    async def stop(self, within: float = 2.0) -> None:
        """Stop beating; nobody knows how late the loop is from now on."""
        await super().stop(within)
        self._admission.lag_seconds = 0.0


_pulses: list[Pulse] = []


def start_pulse() -> None:
    """Measure the running event loop from now on."""
    _pulses.append(Pulse())
    _pulses[-1].start()


async def stop_pulse() -> None:
    """Measure no more."""
    while _pulses:
        await _pulses.pop().stop()
