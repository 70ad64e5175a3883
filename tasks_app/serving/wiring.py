"""What serving needs from the rest: whom to drain, and what to start before and stop after the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from tasks_app.hold.admission import admission
from tasks_app.hold.pulse import start_pulse, stop_pulse
from tasks_app.scrapes.siblings import start_siblings, stop_siblings
from tasks_app.serving.safety import refuse_exposure
from tasks_app.store.migrated import refuse_unmigrated
from tasks_app.wakeup.service import start_service, stop_service


class Drainable(Protocol):
    """Whoever holds requests in this process."""

    draining: bool
    """True from the first `begin_drain()` on."""

    def begin_drain(self) -> None:
        """Answer every held request and hold no more. Called on the event loop; again does nothing."""

    def limit_to(self, most: int) -> None:
        """Hold at most so many requests at once."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a handler and its server drain, start and stop."""

    drain: Drainable
    start: Callable[[], Awaitable[None]]
    stop: Callable[[], Awaitable[None]]


def process_wiring() -> Wiring:
    """The admission, the wake-ups and the upkeep of this process."""
    return Wiring(drain=admission, start=_start, stop=_stop)


def wiring_of(application: Any) -> Wiring:
    """What `application` was made with; the process's own when other middleware is wrapped around it."""
    wiring = getattr(application, "wiring", None)
    return wiring if isinstance(wiring, Wiring) else process_wiring()


def among_siblings(wiring: Wiring, directory: Path) -> Wiring:
    """`wiring` for a process that answers scrapes together with others."""

    async def start() -> None:
        await wiring.start()
        await start_siblings(directory)

    async def stop() -> None:
        await stop_siblings()
        await wiring.stop()

    return replace(wiring, start=start, stop=stop)


async def _start() -> None:
    # Not above: they import models, which are not loaded yet when a project's asgi.py imports us.
    from tasks_app.observers import metrics
    from tasks_app.serving.reports import start_report
    from tasks_app.upkeep import start_upkeep

    refuse_exposure()
    await asyncio.to_thread(refuse_unmigrated, "serve")
    metrics.install()
    await start_service()
    start_pulse()
    # Here as well as in workers: a fleet whose executors are all outside this code base has none of those.
    await start_upkeep()
    await start_report()


async def _stop() -> None:
    from tasks_app.serving.reports import stop_report
    from tasks_app.upkeep import stop_upkeep

    await stop_pulse()
    await stop_report()
    await stop_upkeep()
    await stop_service()
