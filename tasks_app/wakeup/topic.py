"""Who waits for a task, and what was last read of it."""

from __future__ import annotations

import asyncio
from enum import Enum, auto
from typing import Protocol
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


class Alarm:
    """What a held request waits on: rings once, and can be set again."""

    __slots__ = ("_future", "_timer")

    def __init__(self) -> None:
        self._future: asyncio.Future[Wake] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None

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

    def reset(self) -> None:
        """Have the next `woken` wait anew."""
        self._future = asyncio.get_running_loop().create_future()


def is_news(row: Snapshot, before: Snapshot | None, known: int | None) -> bool:
    """Does `row` answer whoever knows version `known` (None: waits for the end) and has seen `before`?"""
    return (
        row.status.is_terminal
        or (known is not None and row.version != known)
        or (row.stalled and before is not None and not before.stalled)
    )


class Waiter(Alarm):
    """One held request for one task, and what would answer it. `known` None waits for the end of the task."""

    __slots__ = ("_any_row", "cause", "known", "owner", "row", "since", "topic")

    def __init__(self, topic: Topic, known: int | None, owner: str | None, since: int) -> None:
        super().__init__()
        self.topic = topic
        self.known = known
        self.owner = owner
        self.since = since
        self.row: Snapshot | None = None
        self.cause: Cause | None = None
        self._any_row = False

    def wants(self, row: Snapshot) -> bool:
        """Is this row an answer? Also when it belongs to somebody else: that ends the wait at once."""
        return (
            self._any_row
            or is_news(row, self.row, self.known)
            or (self.owner is not None and row.owner != self.owner)
        )

    def see(self, row: Snapshot, cause: Cause) -> None:
        """Take note of a row that was read after this waiter registered; wakes if it is an answer."""
        answers = self.wants(row)
        self.row = row
        if answers:
            self.cause = cause
            self.wake(Wake.ROW)

    def lose(self, task_id: UUID) -> None:
        """Take note that there is no such task."""
        self.wake(Wake.GONE)

    async def look(self, within: float) -> Wake:
        """Wait for any row that is read from now on, whatever it says; TIMEOUT after `within` seconds."""
        self._any_row = True
        self.reset()
        return await self.woken(within)


class Watcher(Protocol):
    """Who is registered with a topic. A batch that was sent before `since` says nothing to it."""

    since: int

    def see(self, row: Snapshot, cause: Cause) -> None:
        """A row was read."""

    def lose(self, task_id: UUID) -> None:
        """There was none."""

    def wake(self, why: Wake) -> None:
        """End the wait."""


class Topic:
    """A task that somebody waits for, or waited for a moment ago."""

    __slots__ = ("id", "read_at", "read_in", "snapshot", "stale_before", "waiters")

    def __init__(self, task_id: UUID, next_batch: int) -> None:
        self.id = task_id
        self.waiters: set[Watcher] = set()
        self.snapshot: Snapshot | None = None
        self.read_in = 0
        self.read_at = float("-inf")
        # A batch sent before this entry, its latest hint or the present epoch says nothing about now.
        self.stale_before = next_batch

    def discard(self, next_batch: int) -> None:
        """Forget the snapshot, and what is being read at this moment."""
        self.snapshot = None
        self.stale_before = next_batch
