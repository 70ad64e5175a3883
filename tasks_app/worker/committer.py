"""Group commit: whatever has gathered is written in one statement, soon after the previous write returned."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast
from uuid import UUID

import psycopg

from asyncpoll.contract import Status
from tasks_app import conf
from tasks_app.errors import StoreUnavailable
from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import Call, Change, Committed, commit, find_committed, holds
from tasks_app.store.pool import Pool
from tasks_app.worker.attempt import Attempt
from tasks_app.worker.entries import Entry, done, take
from tasks_app.worker.held import Held
from tasks_app.worker.milestones import join
from tasks_app.worker.outcome import poisoned
from tasks_app.worker.recording import Settled

_LONG_SECONDS = 3600.0
# Under load the next write waits for as many changes as there are slots, at most so long: small batches are twice as
# large for it, which costs a sixth less for each task, in the worker and the database together.
_GATHER_SECONDS = 0.003
# Of so many the statement's own cost hardly shows any more.
_ENOUGH_CHANGES = 100
# So many tries at a locked row are more than a second: no longer one of our own statements, but something that somebody
# may want to know of.
_LOCKED_FOR_LONG = 9


class Committer(Loop):
    """Takes changes from `offer` and commits them. `on_fenced` hears of an attempt that was fenced off; `on_delay` of
    the seconds until a retry that was committed is due."""

    name = "committer"

    def __init__(
        self,
        pool: Pool,
        worker: UUID,
        held: Held,
        on_fenced: Callable[[Attempt], None],
        on_delay: Callable[[float], None],
    ) -> None:
        super().__init__()
        self._pool = pool
        self._worker = worker
        self._held = held
        self._on_fenced = on_fenced
        self._on_delay = on_delay
        self._gathered: dict[UUID, Entry] = {}
        self._writing: dict[UUID, Entry] = {}
        self._locked: dict[UUID, Entry] = {}
        self._gather_until = float("-inf")
        self._quiet = asyncio.Event()
        self._quiet.set()

    def offer(self, attempt: Attempt, change: Change, settled: Settled | None = None) -> None:
        """Have `change` committed soon. What one attempt offers is joined and committed in its order.

        `settled` hears of the end: "" when the change is committed, else the reason why it never will be.
        """
        self._gather(Entry(attempt, change, () if settled is None else (settled,)))
        self._quiet.clear()
        self.wake()

    async def drain(self, within: float) -> bool:
        """Wait until all that was offered is written, at most `within` seconds; False if some is not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._quiet.wait()
        return self._quiet.is_set()

    async def stop(self, within: float = 2.0) -> None:
        """End; whoever still waits for a commit is told that there will be none."""
        await super().stop(within)
        left = (*self._writing.values(), *self._locked.values(), *self._gathered.values())
        for entry in left:
            entry.settle("the worker stopped")

    async def step(self) -> float:
        """Write one batch. Raises StoreUnavailable, with nothing lost, while the database is away."""
        try:
            if self._writing:
                await self._look_for_unanswered()
            pause = self._try_locked_again() if self._locked else _LONG_SECONDS
            if not self._gathered:
                if not self._locked:
                    self._quiet.set()
                return pause
            if (rest := self._until_worthwhile) > 0:
                return min(rest, pause)
            self._writing = take(self._gathered)
            await self._write(list(self._writing.values()))
        except StoreUnavailable as error:
            self._keep(error)
            raise
        return 0.0

    @property
    def _until_worthwhile(self) -> float:
        """Seconds to gather before the next write: none after one of a single change, and none once a round of the slots
        has gathered, or enough."""
        if len(self._gathered) >= min(self._held.concurrency, _ENOUGH_CHANGES):
            return 0.0
        return self._gather_until - time.monotonic()

    def _gather(self, entry: Entry) -> None:
        """One entry per task: changes of one attempt are joined, a newer attempt displaces an older one."""
        attempt, change, waiting, *_ = entry
        # What follows a change whose row is locked waits with it.
        is_locked = bool(self._locked) and change.task_id in self._locked
        entries = self._locked if is_locked else self._gathered
        known = entries.get(change.task_id)
        if known is not None and known.change.attempt > change.attempt:
            self._fence(entry)
            return
        if known is not None and known.attempt is attempt:
            joined = join(known.change, change)
            entry = known._replace(change=joined, waiting=known.waiting + waiting)
        elif known is not None:
            self._fence(known)
        entries[change.task_id] = entry

    def _set_aside(self, entry: Entry) -> None:
        """The row is locked by somebody else, and the attempt's all the same."""
        attempt, task_id = entry.attempt, entry.change.task_id
        entry = self._locked[task_id] = entry.set_aside(time.monotonic())
        if entry.tries == _LOCKED_FOR_LONG:
            emit("commit.locked", id=task_id, name=attempt.name, attempt=attempt.attempt)
        newer = self._gathered.pop(task_id, None)
        if newer is not None:
            self._gather(newer)

    def _try_locked_again(self) -> float:
        """Take up the locked entries that are due; gives the seconds until the next is."""
        now = time.monotonic()
        for entry in [entry for entry in self._locked.values() if entry.due_at <= now]:
            del self._locked[entry.change.task_id]
            if entry.attempt.lease_until > now:
                self._gather(entry)
            else:
                self._let_go(entry, StoreUnavailable("its row was locked all the while"))
        return min((entry.due_at - now for entry in self._locked.values()), default=_LONG_SECONDS)

    def _keep(self, error: StoreUnavailable) -> None:
        """Keep what was not written for the next try, but nothing whose lease has run out."""
        now = time.monotonic()
        for entries in (self._writing, self._gathered):
            for entry in [entry for entry in entries.values() if entry.attempt.lease_until <= now]:
                del entries[entry.change.task_id]
                self._let_go(entry, error)
        size = len({*self._writing, *self._gathered})
        emit("commit.retried", size=size, error=error)

    async def _look_for_unanswered(self) -> None:
        """What was being written when the database went away may have been written, and only the answer was lost."""
        unanswered = list(self._writing.values())
        looked_for = [(entry.change, entry.attempt.version) for entry in unanswered]
        committed = await self._pool.run(find_committed(looked_for))
        self._succeed_all(unanswered, committed)
        newer, self._gathered = self._gathered, {}
        for entry in (*self._writing.values(), *newer.values()):
            self._gather(entry)
        self._writing = {}

    async def _write(self, batch: Sequence[Entry]) -> None:
        started = time.monotonic()
        changes = sorted((entry.change for entry in batch), key=lambda change: change.task_id.int)
        try:
            committed = await self._pool.run(self._commit(changes))
        except Exception as error:
            if isinstance(error, StoreUnavailable) and not _is_refusal(error):
                raise
            await self._write_apart(batch, error)
            return
        ended = time.monotonic()
        duration_ms = (ended - started) * 1000
        self._gather_until = ended + _GATHER_SECONDS if len(batch) > 1 else ended
        emit("task.committed", size=len(committed), duration_ms=duration_ms)
        await self._settle(batch, committed)

    def _commit(self, changes: Sequence[Change]) -> Call[list[Committed]]:
        settings = conf.current()
        return commit(
            self._worker,
            changes,
            reoffer=settings.limits_running,
            anywhere=settings.MAX_RUNNING_PER_OWNER > 0,
        )

    async def _write_apart(self, batch: Sequence[Entry], error: Exception) -> None:
        """Something in `batch` is refused: halve it until that is alone, and fail its task instead."""
        if len(batch) > 1:
            middle = len(batch) // 2
            await self._write(batch[:middle])
            await self._write(batch[middle:])
            return
        entry = batch[0]
        emit("commit.refused", id=entry.attempt.id, name=entry.attempt.name, error=error)
        try:
            change = poisoned(entry.change, error.__cause__ or error)
            committed = await self._pool.run(self._commit([change]))
        except Exception as again:
            if isinstance(again, StoreUnavailable) and not _is_refusal(again):
                raise
            self._writing.pop(entry.change.task_id, None)
            self._let_go(entry, again)
            return
        await self._settle([Entry(entry.attempt, change)], committed)
        entry.settle(f"the database refused it: {error.__cause__ or error}")
        if not entry.change.ends_attempt:
            self._on_fenced(entry.attempt)

    async def _settle(self, batch: Sequence[Entry], committed: Sequence[Committed]) -> None:
        missing = self._succeed_all(batch, committed)
        if missing:
            await self._account_for(missing)

    def _succeed_all(self, batch: Sequence[Entry], committed: Sequence[Committed]) -> list[Entry]:
        """What is committed of `batch` is settled; gives the rest."""
        seen = {task.id: task for task in committed}
        missing, delays, ended = [], [], []
        for entry in batch:
            task = seen.get(entry.change.task_id)
            if task is None:
                missing.append(entry)
                continue
            if (delay := self._succeed(entry, task)) > 0:
                delays.append(delay)
            if task.status.is_terminal:
                ended.append(done(entry.attempt, task))
        if delays:
            self._on_delay(min(delays))
        if ended:
            emit("tasks.done", ended=ended)
        return missing

    def _succeed(self, entry: Entry, task: Committed) -> float:
        """What is committed is settled; gives the delay of a retry, or 0."""
        attempt, change, *_ = entry
        self._writing.pop(change.task_id, None)
        attempt.committed = task
        entry.settle()
        if not change.ends_attempt:
            return 0.0
        self._held.drop(attempt)
        return change.delay_seconds if change.status is Status.PENDING else 0.0

    async def _account_for(self, missing: Sequence[Entry]) -> None:
        """What did not come back was fenced off, unless its attempt holds the task: then the row is locked."""
        held = await self._pool.run(holds(self._worker, [entry.change for entry in missing]))
        for entry in missing:
            self._writing.pop(entry.change.task_id, None)
            if entry.change.task_id in held:
                self._set_aside(entry)
            else:
                self._fence(entry)

    def _fence(self, entry: Entry) -> None:
        attempt, change, *_ = entry
        emit(
            "task.fenced",
            id=attempt.id,
            name=attempt.name,
            attempt=attempt.attempt,
            status=change.status,
        )
        entry.settle("the attempt does not hold the task any more")
        self._on_fenced(attempt)
        self._held.drop(attempt)

    def _let_go(self, entry: Entry, error: Exception) -> None:
        attempt, change, *_ = entry
        emit(
            "commit.abandoned",
            id=attempt.id,
            name=attempt.name,
            attempt=attempt.attempt,
            status=change.status,
            error=error,
        )
        entry.settle(f"it could not be committed: {error}")
        if change.ends_attempt:
            self._held.drop(attempt)


def _is_refusal(error: StoreUnavailable) -> bool:
    """True when the database did answer: a value exceeds one of its limits, which psycopg calls operational, too."""
    cause = cast("psycopg.Error | None", error.__cause__)
    return (getattr(cause, "sqlstate", None) or "").startswith("54")
