"""Requests held on futures, until somebody releases them or the process drains."""

from __future__ import annotations

import asyncio


class Holds:
    """What the small project drains."""

    def __init__(self) -> None:
        self.draining = False
        self.most: int | None = None
        self._waiting: set[asyncio.Future[str]] = set()

    @property
    def held(self) -> int:
        """Requests that wait now."""
        return len(self._waiting)

    async def wait(self) -> str:
        """Why the wait ended."""
        if self.draining:
            return "DRAINING"
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            return await future
        finally:
            self._waiting.discard(future)

    def release(self, why: str) -> None:
        """End every wait."""
        for future in self._waiting:
            if not future.done():
                future.set_result(why)

    def begin_drain(self) -> None:
        """End every wait and let none begin."""
        self.draining = True
        self.release("DRAINING")

    def limit_to(self, most: int) -> None:
        """Remember the limit."""
        self.most = most


holds = Holds()
