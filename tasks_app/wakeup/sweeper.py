"""What the hub promises without being told: re-reads while there is no trust, and now and then while there is."""

from __future__ import annotations

import time
from collections.abc import Callable

from tasks_app.loops import Loop
from tasks_app.wakeup.hub import Hub
from tasks_app.wakeup.reader import Cause

_TICK_SECONDS = 0.25
SWEEP_SECONDS = 1.0
# With trust, rows that were deleted or edited outside the store, and leases that ran out, are found this often.
REFRESH_SECONDS = 15.0


class Sweeper(Loop):
    """Ends trust after silence, re-reads what has waiters, and has one held claim of each queue look for work.

    It never waits for anything but time.
    """

    name = "sweeper"

    def __init__(self, hub: Hub, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._hub = hub
        self._clock = clock
        self._swept_at = self._offered_at = clock()

    async def step(self) -> float:
        """Look whether a sweep is due; returns the time to the next look."""
        now = self._clock()
        self._hub.check_silence()
        if now - self._offered_at >= SWEEP_SECONDS:
            self._offered_at = now
            self._hub.offers.offer_all()
        trusted = self._hub.trust.active
        if now - self._swept_at >= (REFRESH_SECONDS if trusted else SWEEP_SECONDS):
            self._swept_at = now
            self._hub.sweep(Cause.REFRESH if trusted else Cause.SWEEP)
            self._hub.tidy()
        return _TICK_SECONDS
