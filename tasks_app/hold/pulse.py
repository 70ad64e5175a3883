"""Sheds holds while the event loop is late."""

from __future__ import annotations

import time
from collections.abc import Callable

from tasks_app.events import emit
from tasks_app.hold.admission import Admission, admission
from tasks_app.lateness import Beats


class Pulse(Beats):
    """Tells admission how late the event loop is. While that is more than MAX_LAG_SECONDS, holds are shed."""

    def __init__(
        self, told: Admission = admission, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock)
        self._admission = told

    async def step(self) -> float:
        """One beat; returns the time to the next."""
        pause = await super().step()
        self._admission.lag_seconds = self.late_seconds
        return pause

    def turned(self) -> None:
        """Say so."""
        emit("server.lags" if self.lags else "server.caught_up", lag_seconds=self.late_seconds)

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
