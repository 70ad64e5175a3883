"""Claims as many tasks as there are free slots, as soon as there may be some."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from tasks_app import conf, queues
from tasks_app.errors import StoreUnavailable
from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import claim, give_back
from tasks_app.store.pool import Pool
from tasks_app.store.quarantine import despite_unfit
from tasks_app.worker.executor import Executor
from tasks_app.worker.held import Held

# Of a worker that stops: what it does not manage within that time is left to the rescue.
_GIVE_BACK_SECONDS = 1.0


class Claimer(Loop):
    """Feeds the executor. `queues` None means every queue but those that are run outside."""

    name = "claimer"

    def __init__(
        self,
        pool: Pool,
        worker: UUID,
        queues: Sequence[str] | None,
        held: Held,
        executor: Executor,
    ) -> None:
        super().__init__()
        self._pool = pool
        self._worker = worker
        self._queues = queues
        self._held = held
        self._executor = executor
        # True while more tasks may be ready than the last claim took.
        self._hungry = True
        self._retired = False
        # True from a claim on until its answer: without one, the tasks that it took may be ours without our knowing.
        self._unanswered = False
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        held.on_room = self._room

    def work_offered(self, queue: str | None = None) -> None:
        """There may be work on `queue` (None: anywhere)."""
        if queue is None or self._takes(queue):
            self._hungry = True
            self.wake()

    async def retire(self, within: float) -> None:
        """Claim no more. A claim that is on its way is let arrive, or its tasks would be stranded."""
        self._retired = True
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._at_rest.wait()
        await self.stop()
        with suppress(TimeoutError, StoreUnavailable):
            async with asyncio.timeout(_GIVE_BACK_SECONDS):
                await self._give_back()

    async def step(self) -> float:
        """Claim once. While claims come back full the next follows at once; else it waits to be woken, or a poll."""
        free = 0 if self._retired else self._held.free
        if free:
            self._at_rest.clear()
            try:
                await self._give_back()
                await self._claim(free)
            finally:
                self._at_rest.set()
        return 0.0 if self._hungry and self._held.free else conf.current().WORKER_POLL_SECONDS

    async def _give_back(self) -> None:
        """Nobody runs what the last claim took if its answer was lost with a connection."""
        if not self._unanswered:
            return
        known = [(attempt.id, attempt.attempt) for attempt in self._held.all()]
        call = give_back(self._worker, known)
        given = await despite_unfit(self._pool, lambda: self._pool.run(call))
        self._unanswered = False
        if given:
            emit("task.given_back", count=len(given))

    async def _claim(self, free: int) -> None:
        settings = conf.current()
        lease_until = time.monotonic() + settings.LEASE_SECONDS
        self._executor.expect()
        # A notification that arrives while the claim is out makes it True again.
        self._hungry = False
        self._unanswered = True
        call = claim(self._worker, free, self._queues, settings.LEASE_SECONDS, queues.outside())
        batch = await despite_unfit(self._pool, lambda: self._pool.run(call))
        self._unanswered = False
        if batch:
            emit("task.claimed", count=len(batch), asked=free)
        if len(batch) >= free:
            self._hungry = True
        self._executor.accept(batch, lease_until)

    def _takes(self, queue: str) -> bool:
        if self._queues is None:
            return queues.reserved_by(queue) is None
        return queue in self._queues

    def _room(self) -> None:
        if self._hungry:
            self.wake()
