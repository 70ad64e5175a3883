"""Claims as many tasks as there are free slots, as soon as there may be some."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

from tasks_app import conf, queues
from tasks_app.claiming.claim import take
from tasks_app.claiming.rounds import Round
from tasks_app.claiming.turns import Turns
from tasks_app.errors import StoreUnavailable
from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import Claimed, give_back, lanes
from tasks_app.store.pool import Pool
from tasks_app.store.quarantine import despite_unfit
from tasks_app.worker.executor import Executor
from tasks_app.worker.held import Held

# Of a worker that stops: what it does not manage within that time is left to the rescue.
_GIVE_BACK_SECONDS = 1.0
# Who was idle may begin this many rounds of slots before it is one task each again: enough that twenty tasks beside
# somebody's flood wait at most twice as long as they do alone, and a delay of four tasks at most for the others.
_CREDIT_ROUNDS = 4
# Under load every enqueue says that there is work; looking each time who has some would cost more than the claims.
_LOOK_SECONDS = 0.02
# A look costs 7 µs of the database for each owner: beyond so many it is made the more rarely, so that it stays below a
# twentieth of a core.
_LOOK_OWNERS = 100


class Claimer(Loop):
    """Feeds the executor, at most `batch` tasks a claim (None: as many as there are free slots). `queues` None means every
    queue but those that are run outside."""

    name = "claimer"

    def __init__(
        self,
        pool: Pool,
        worker: UUID,
        queues: Sequence[str] | None,
        held: Held,
        executor: Executor,
        batch: int | None = None,
    ) -> None:
        super().__init__()
        self._pool = pool
        self._worker = worker
        self._queues = queues
        self._held = held
        self._executor = executor
        self._batch = batch or held.concurrency
        self._turns = Turns(_CREDIT_ROUNDS * held.concurrency)
        # True while there may be ready tasks of whom the turns don't know.
        self._unsure = True
        self._round = Round()
        # True once a claim got something of a look that may have ended before the last owner.
        self._beyond = False
        self._looked = float("-inf")
        self._look_seconds = _LOOK_SECONDS
        # True when the last claim may have left tasks behind, or was a guess itself, and no look has found that there are
        # none; otherwise a guess is tried before a look. One guess after the other would leave out who is not guessed.
        self._loaded = False
        self._retired = False
        # True from a claim on until its answer: without one, the tasks that it took may be ours without our knowing.
        self._unanswered = False
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        held.on_room = self._room

    def work_offered(self, queue: str | None = None) -> None:
        """There may be work on `queue` (None: anywhere)."""
        if queue is None or self._takes(queue):
            self._unsure = True
            self._round.restart()
            if queue is not None:
                self._turns.guess(queue)
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
        """Claim, or look who has work, until there are no free slots or no more tasks. While there may be more the next
        step follows soon; else it waits to be woken, or a poll."""
        poll = conf.current().WORKER_POLL_SECONDS
        # One claim follows the other without a rest: it is on its way, and the database at work on it, before the loop
        # begins with what the last one got.
        while free := self._free:
            claimed = await self._claim_or_look(free, poll)
            if not self._hungry:
                break
            if not claimed:
                # Without room another claim would gain nothing, but a look may find somebody who has some.
                return max(0.0, self._until_look) if self._unsure else poll
            if not self._turns:
                # Nothing is known to wait, so what was claimed need not wait for the next statement to leave either.
                await asyncio.sleep(0)
        return poll

    @property
    def _free(self) -> int:
        """How many tasks to claim now."""
        return 0 if self._retired else min(self._held.free, self._batch)

    async def _claim_or_look(self, free: int, poll: float) -> bool:
        """Whether a claim was made for which the limits left room."""
        self._at_rest.clear()
        try:
            await self._give_back()
            used_up = not self._turns and (self._unsure or self._beyond)
            is_due = self._unsure and self._loaded and self._until_look <= 0
            polls = time.monotonic() - self._looked >= poll
            if polls:
                self._round.restart()
            if used_up or is_due or polls:
                await self._look()
            return bool(self._turns) and await self._claim(free)
        finally:
            self._at_rest.set()

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

    @property
    def _hungry(self) -> bool:
        return self._unsure or self._beyond or bool(self._turns)

    @property
    def _until_look(self) -> float:
        """Seconds until whoever knows of somebody with work may look who else has some."""
        return self._looked + self._look_seconds - time.monotonic()

    async def _look(self) -> None:
        # A notification that arrives while the look is out makes it True again.
        self._unsure = self._beyond = False
        self._looked = time.monotonic()
        try:
            found = await self._pool.run(lanes(self._queues, queues.outside(), self._turns.seen))
        except BaseException:
            self._unsure = True
            raise
        self._look_seconds = _LOOK_SECONDS * max(1.0, len(found) / _LOOK_OWNERS)
        self._round.meet(found)
        learn = self._turns.learn if self._round.is_cut else self._turns.relearn
        learn(found)
        self._loaded = self._loaded and bool(self._turns)

    async def _claim(self, free: int) -> bool:
        """Claim for `free` slots. False: the limits of running tasks leave no room now."""
        lease_seconds = conf.current().LEASE_SECONDS
        lease_until = time.monotonic() + lease_seconds
        self._executor.expect()
        self._unanswered = True
        batch = await despite_unfit(self._pool, lambda: self._take(free, lease_seconds))
        self._unanswered = False
        self._loaded = self._unsure or bool(self._turns)
        if batch is None:
            # Whoever has room may stand behind all those who have none.
            self._unsure = self._unsure or self._round.goes_on
        elif batch:
            self._beyond = self._round.is_cut
            emit("task.claimed", count=len(batch), asked=free)
        self._executor.accept(batch or (), lease_until)
        return batch is not None

    async def _take(self, free: int, lease_seconds: float) -> list[Claimed] | None:
        if not conf.current().limits_running:
            return await take(self._pool, self._turns, self._worker, free, lease_seconds)
        async with self._pool.transaction() as transaction:
            return await take(transaction, self._turns, self._worker, free, lease_seconds)

    def _takes(self, queue: str) -> bool:
        if self._queues is None:
            return queues.reserved_by(queue) is None
        return queue in self._queues

    def _room(self) -> None:
        # Told of each task of a batch: the first one is news.
        if not self.is_woken and self._hungry:
            self.wake()
