"""Gathers reads: one statement for everything that was asked for while the last one was on its way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import IntEnum
from itertools import islice
from uuid import UUID

from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import Snapshot

# Decoding a thousand rows takes about ten milliseconds, during which nobody else is answered.
LARGEST_BATCH = 1_000
_IDLE_SECONDS = 60.0


class Cause(IntEnum):
    """Why a row is read; the larger is the one reported where several meet."""

    SWEEP = 0
    REFRESH = 1
    TRUST = 2
    FIRST = 3
    HINT = 4


Rows = Mapping[UUID, Snapshot]
Deliver = Callable[[int, Rows, Mapping[UUID, Cause]], None]


class Reader(Loop):
    """Owns every read of a row, so that a client hanging up never cancels a query half-way.

    Batches are numbered in the order they are sent, and one is on its way at a time: "read after this moment" is "in
    batch `next_batch` or later".
    """

    name = "reader"
    # Waiters were promised an answer within 3 s of their commit, also right after an outage.
    longest_pause_seconds = 1.0

    def __init__(self, read: Callable[[list[UUID]], Awaitable[Rows]], deliver: Deliver) -> None:
        super().__init__()
        self._read = read
        self._deliver = deliver
        self._asked: dict[UUID, Cause] = {}
        self.next_batch = 1

    def ask(self, task_id: UUID, cause: Cause) -> None:
        """Have the task read in a batch that has not been sent yet."""
        known = self._asked.get(task_id)
        if known is None or known < cause:
            self._asked[task_id] = cause
        if known is None:
            self.wake()

    def ask_all(self, ids: Iterable[UUID], cause: Cause) -> None:
        """`ask` for each of `ids`."""
        for task_id in ids:
            self.ask(task_id, cause)

    async def step(self) -> float:
        """Send one batch and deliver it. Raises StoreUnavailable; what was asked for is then asked for again."""
        batch = dict(islice(self._asked.items(), LARGEST_BATCH))
        if not batch:
            return _IDLE_SECONDS
        for task_id in batch:
            del self._asked[task_id]
        number, self.next_batch = self.next_batch, self.next_batch + 1
        try:
            rows = await self._read(list(batch))
        except BaseException:
            # A cancellation as well: those who wait are still there.
            for task_id, cause in batch.items():
                self.ask(task_id, cause)
            raise
        emit("reader.read", asked=len(batch), found=len(rows))
        self._deliver(number, rows, batch)
        return 0.0 if self._asked else _IDLE_SECONDS
