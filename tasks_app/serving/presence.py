"""Ends a request the moment its client hangs up."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

# Library code can swallow a cancellation, and then lives on with a client that is gone. So it is told again.
_AGAIN_SECONDS = 0.05


class Presence:
    """While entered, cancels the entering task when `receive` says that its client has gone.

    That cancellation is swallowed on leaving, any other goes on.
    """

    __slots__ = ("_before", "_cancels", "_receive", "_task", "_watcher")

    def __init__(self, receive: Any) -> None:
        self._receive = receive

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._before = task.cancelling()
        self._cancels = 0
        self._watcher = asyncio.create_task(self._watch())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        watcher = self._watcher
        # Its traceback will refer to this object: kept here, every request would leave a cycle to the collector.
        del self._watcher
        watcher.cancel()
        for _ in range(self._cancels):
            self._task.uncancel()
        ours_only = self._cancels > 0 and self._task.cancelling() <= self._before
        return ours_only and kind is not None and issubclass(kind, asyncio.CancelledError)

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        # Granian's own kind of task can't be cancelled and says so; its request then runs its time out.
        while self._task.cancel():
            self._cancels += 1
            await asyncio.sleep(_AGAIN_SECONDS)
