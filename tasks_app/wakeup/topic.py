"""Who waits for a task, and what was last read of it."""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from uuid import UUID

from tasks_app.store import Snapshot
from tasks_app.wakeup.reader import Cause


class Wake(Enum):
    """Why a waiter's wait ended."""

    ROW = auto()
    GONE = auto()
    TIMEOUT = auto()
    DRAINING = auto()
    OFFER = auto()


class Waiter:
    """One held request: a future, and what would answer it. `known` None waits for the end of the task."""

    __slots__ = (
        "_any_row",
        "_future",
        "_timer",
        "cause",
        "known",
        "owner",
        "row",
        "since",
        "topic",
    )

    def __init__(self, topic: Topic, known: int | None, owner: str | None, since: int) -> None:
        self._future: asyncio.Future[Wake] = asyncio.get_running_loop().create_future()
        self.topic = topic
        self.known = known
        self.owner = owner
        self.since = since
        self.row: Snapshot | None = None
        self.cause: Cause | None = None
        self._any_row = False
        self._timer: asyncio.TimerHandle | None = None

    def wants(self, row: Snapshot) -> bool:
        """Is this row an answer? Also when it belongs to somebody else: that ends the wait at once."""
        return (
            self._any_row
            or row.status.is_terminal
            or (self.known is not None and row.version != self.known)
            or (self.owner is not None and row.owner != self.owner)
            or (row.stalled and self.row is not None and not self.row.stalled)
        )

    def see(self, row: Snapshot, cause: Cause) -> None:
        """Take note of a row that was read after this waiter registered; wakes if it is an answer."""
        answers = self.wants(row)
        self.row = row
        if answers:
            self.cause = cause
            self.wake(Wake.ROW)

    def wake(self, why: Wake) -> None:
        """End the wait, unless it has ended."""
        if not self._future.done():
            self._future.set_result(why)

    async def woken(self, within: float) -> Wake:
        """Wait for `wake`, at most `within` seconds: then TIMEOUT."""
        self._timer = asyncio.get_running_loop().call_later(within, self.wake, Wake.TIMEOUT)
        try:
            return await self._future
        finally:
            self._timer.cancel()

    async def look(self, within: float) -> Wake:
        """Wait for any row that is read from now on, whatever it says; TIMEOUT after `within` seconds."""
        self._any_row = True
        self._future = asyncio.get_running_loop().create_future()
        return await self.woken(within)


class Topic:
    """A task that somebody waits for, or waited for a moment ago."""

    __slots__ = ("id", "read_at", "read_in", "snapshot", "stale_before", "waiters")

    def __init__(self, task_id: UUID, next_batch: int) -> None:
        self.id = task_id
        self.waiters: set[Waiter] = set()
        self.snapshot: Snapshot | None = None
        self.read_in = 0
        self.read_at = float("-inf")
        # A batch sent before this entry, its latest hint or the present epoch says nothing about now.
        self.stale_before = next_batch

    def discard(self, next_batch: int) -> None:
        """Forget the snapshot, and what is being read at this moment."""
        self.snapshot = None
        self.stale_before = next_batch
