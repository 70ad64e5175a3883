"""An in-memory channel layer whose receiver gets nothing while a file is there: what comes meanwhile overruns it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

from channels.layers import InMemoryChannelLayer

_LOOK_EVERY_SECONDS = 0.02
_logger = logging.getLogger(__name__)


class GatedLayer(InMemoryChannelLayer):
    """Logs the messages that no channel had room for."""

    def __init__(self, *, closed_by: str | Path, **options: Any) -> None:
        super().__init__(**options)
        self._closed_by = Path(closed_by)

    async def receive(self, channel: str) -> dict[str, Any]:
        """The next message, once the gate is open."""
        while self._closed_by.exists():
            await asyncio.sleep(_LOOK_EVERY_SECONDS)
        message: dict[str, Any] = await super().receive(channel)
        return message

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Send, and log what found no room."""
        before = [queue.qsize() for queue in self.channels.values()]
        await super().group_send(group, message)
        if before == [queue.qsize() for queue in self.channels.values()]:
            _logger.warning("No room for a message.")
