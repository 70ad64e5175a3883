"""Starting and draining under servers that are not ours: uvicorn, granian and whoever else speaks ASGI's lifespan."""

from __future__ import annotations

import asyncio
import signal
import threading
from types import FrameType
from typing import Any

from tasks_app.collector import calm_collector
from tasks_app.errors import ConfigurationError
from tasks_app.serving.wiring import Drainable, Wiring

# Between answering the held requests and letting the server stop: its clients need that long to read and go.
GRACE_SECONDS = 1.0
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Lifespan:
    """One ASGI lifespan: wake-ups run and signals are heard between its start and its end."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring
        self._signals = DrainOnSignal(wiring.drain)

    async def run(self, receive: Any, send: Any) -> None:
        """Follow the lifespan to its end."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._signals.chain()
                try:
                    await self._wiring.start()
                except ConfigurationError as error:
                    # Raised, it would be taken by uvicorn for "no lifespan here", and served all the same.
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                calm_collector()
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                self._wiring.drain.begin_drain()
                await self._wiring.stop()
                self._signals.unchain()
                await send({"type": "lifespan.shutdown.complete"})
                return


class DrainOnSignal:
    """Hears SIGTERM and SIGINT before the server does, drains, and passes the signal on a moment later.

    uvicorn waits for held requests without answering them, so it would never stop. Where a server has its own handler
    on the event loop (granian), it hears the signal at the same time, and this one only drains.
    """

    def __init__(self, drain: Drainable, grace_seconds: float = GRACE_SECONDS) -> None:
        self._drain = drain
        self._grace_seconds = grace_seconds
        self._previous: dict[int, Any] = {}
        self._heard = False

    def chain(self) -> None:
        """Put ourselves before the present handlers. Does nothing off the main thread, where signals aren't heard."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._loop = asyncio.get_running_loop()
        self._previous = {number: signal.signal(number, self._hear) for number in _SIGNALS}

    def unchain(self) -> None:
        """Give the signals back."""
        for number, handler in self._previous.items():
            if signal.getsignal(number) == self._hear:
                signal.signal(number, handler)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self._heard:
            self._pass_on(number)
            return
        self._heard = True
        self._loop.call_soon_threadsafe(self._begin, number)

    def _begin(self, number: int) -> None:
        self._drain.begin_drain()
        self._loop.call_later(self._grace_seconds, self._pass_on, number)

    def _pass_on(self, number: int) -> None:
        handler = self._previous[number]
        if callable(handler):
            handler(number, None)
        else:
            signal.signal(number, handler or signal.SIG_DFL)
            signal.raise_signal(number)
