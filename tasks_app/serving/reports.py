"""Says every few seconds how this web process is, for the overview, which another process may answer."""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from uuid import uuid4

from tasks_app.hold.admission import admission
from tasks_app.loops import Loop
from tasks_app.observers.lately import Lately
from tasks_app.observers.metrics import WAITS
from tasks_app.observers.waits import WAKE_SECONDS
from tasks_app.store import WebFacts, report_web, retire_web
from tasks_app.wakeup.service import WakeupService, current_service

EVERY_SECONDS = 5.0
_LATELY_SECONDS = 60.0


class Report(Loop):
    """One row of this process, kept up to date; it is gone when the process ends in order."""

    name = "report"
    longest_pause_seconds = EVERY_SECONDS

    def __init__(self, service: WakeupService) -> None:
        super().__init__()
        self.id = uuid4()
        self._service = service
        self._wakes = Lately(WAKE_SECONDS, round(_LATELY_SECONDS / EVERY_SECONDS))

    async def step(self) -> float:
        """Say it once."""
        self._wakes.look(WAITS.wakes)
        sent_at = time.time()
        theirs = await self._service.pool.run(report_web(self.facts()))
        # The answer was made at some moment in between.
        WAITS.ahead_seconds = theirs - (sent_at + time.time()) / 2
        return EVERY_SECONDS

    async def stop(self, within: float = 2.0) -> None:
        """Say no more. A database that is away is not waited for: the row is forgotten by itself."""
        await super().stop(within)
        with suppress(Exception):
            await self._service.pool.run(retire_web(self.id))

    def facts(self) -> WebFacts:
        """How this process is now."""
        link = self._service.state
        return WebFacts(
            id=self.id,
            hostname=socket.gethostname(),
            pid=os.getpid(),
            held=admission.held,
            most_held=admission.most_held,
            draining=admission.draining,
            lag_seconds=admission.lag_seconds,
            bridge=link.bridge,
            linked=link.trusted,
            layered=link.layer,
            woken=self._wakes.count,
            wake_p50=self._wakes.at(0.5),
            wake_p95=self._wakes.at(0.95),
        )


_reports: list[Report] = []


async def start_report() -> None:
    """Say how the running event loop's service is, from now on."""
    _reports.append(Report(await current_service()))
    _reports[-1].start()


async def stop_report() -> None:
    """Say no more."""
    while _reports:
        await _reports.pop().stop()
