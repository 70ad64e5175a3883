"""One worker process: its parts wired together, started, and stopped without losing what they hold."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID, uuid4

from tasks_app import catalogue
from tasks_app.events import emit
from tasks_app.store import WorkerFacts
from tasks_app.store.pool import Pool, close_loop_pool
from tasks_app.wakeup.bridge import WORK_CHANNEL
from tasks_app.wakeup.listener import Listener
from tasks_app.wakeup.pooler import check_listen_connection
from tasks_app.worker.attempt import Attempt
from tasks_app.worker.claimer import Claimer
from tasks_app.worker.committer import Committer
from tasks_app.worker.executor import Executor
from tasks_app.worker.hearing import WorkEar
from tasks_app.worker.held import Held
from tasks_app.worker.leases import Heartbeat
from tasks_app.worker.pulse import WorkerPulse

# How long stopping waits for the database where it is slow or away; what was not written then is rescued by others.
_CLAIM_SECONDS = 4.0
_COMMIT_SECONDS = 4.0
_GOODBYE_SECONDS = 3.0
# An attempt that outlasts its time limit ends then, or at the end of its clean-up.
_OVERDUE_SECONDS = 10.0


class Upkeep(Protocol):
    """Loops that look after the table; `tasks_app.upkeep.Upkeep` is one."""

    def start(self) -> None:
        """Begin."""

    async def stop(self) -> None:
        """End."""

    def due_in(self, seconds: float) -> None:
        """A task will be due then."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a worker process works. `queues` None: every queue. `batch` None: a claim takes as many as there are free slots."""

    queues: tuple[str, ...] | None = None
    concurrency: int = 20
    grace_seconds: float = 30.0
    batch: int | None = None


class Worker:
    """Made and run on one event loop. Its id is new each time, so that nothing it left behind looks alive."""

    def __init__(self, options: Options, make_upkeep: Callable[[Pool], Upkeep]) -> None:
        self.id: UUID = uuid4()
        self.options = options
        self.held = Held(options.concurrency)
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._pool = Pool("worker")
        self._upkeep = make_upkeep(self._pool)
        self.committer = Committer(
            self._pool, self.id, self.held, self._fenced, self._upkeep.due_in
        )
        self.executor = Executor(self.held, self.committer.offer)
        self.claimer = Claimer(
            self._pool, self.id, options.queues, self.held, self.executor, options.batch
        )
        ear = WorkEar(self.claimer, self.executor)
        self._listener = Listener("worker listener", [WORK_CHANNEL], ear)
        self._pulse = WorkerPulse()
        self._heartbeat = Heartbeat(self._facts(), self.held, self._heard_of_leases)

    @property
    def late_seconds(self) -> float:
        """How late its event loop has been lately."""
        return self._pulse.late_seconds

    @property
    def loop_tasks(self) -> int:
        """How many asyncio tasks its event loop has. From any thread."""
        return len(asyncio.all_tasks(self._loop))

    @property
    def pool_stats(self) -> Mapping[str, int]:
        """Counters of its connections, by psycopg_pool's names."""
        return self._pool.stats

    async def run(self) -> None:
        """Work until `stop()` is called, or a signal asks for it; then give back what can't be finished."""
        await self.start()
        await self._stopping.wait()
        await self.shut_down()

    async def start(self) -> None:
        """Begin. A database that is away is waited for in the background.

        Raises PoolerInTheWay where notifications would go unheard.
        """
        await check_listen_connection("worker listener")
        await self._pool.open()
        self._pulse.start()
        self._heartbeat.start()
        self._listener.start()
        self.committer.start()
        self._upkeep.start()
        self.claimer.start()
        emit(
            "worker.started",
            id=self.id,
            pid=os.getpid(),
            queues=self.options.queues or "all",
            concurrency=self.options.concurrency,
            tasks=sum(1 for _ in catalogue.known()),
        )

    def stop(self) -> None:
        """Ask for the end: running tasks get their grace. Asked again, they are released at once."""
        (self._hurry if self._stopping.is_set() else self._stopping).set()

    async def shut_down(self) -> None:
        """Stop claiming, let running tasks finish within the grace, release the others, and commit all of it.

        A database that is away has as long to come back: a task has finished when its end is written.
        """
        emit("worker.stopping", id=self.id, running=self.held.running)
        grace_ends = self._loop.time() + self.options.grace_seconds
        self.executor.drain()
        await self.claimer.retire(within=_CLAIM_SECONDS)
        await self._unless_hurried(self.held.idle.wait(), grace_ends)
        await self.executor.release()
        await self._unless_hurried(
            self.committer.drain(within=self.options.grace_seconds), grace_ends
        )
        written = await self.committer.drain(within=_COMMIT_SECONDS)
        await self._pulse.stop()
        await self._upkeep.stop()
        await self._listener.stop()
        await self.committer.stop()
        await asyncio.to_thread(self._heartbeat.stop, _GOODBYE_SECONDS)
        await self._pool.close()
        await close_loop_pool()
        emit(
            "worker.stopped",
            id=self.id,
            stragglers=self.executor.stragglers,
            unwritten=0 if written else len(self.held.all()),
        )

    def overdue(self) -> list[Attempt]:
        """The attempts whose time limit has long passed: an event loop that goes round would have ended them."""
        limit = time.monotonic() - _OVERDUE_SECONDS
        return [
            attempt
            for attempt in self.held.all()
            if not attempt.is_over and attempt.started_at + attempt.claimed.timeout_seconds < limit
        ]

    def give_up(self) -> None:
        """Give back without the event loop, from another thread, for a process that ends right after it.

        What is overdue is left to the rescue, which counts it as the failure that it is.
        """
        overdue = self.overdue()
        emit("worker.blocked", id=self.id, running=self.held.running - len(overdue))
        self._heartbeat.stop(_GOODBYE_SECONDS, give_back_but=overdue)

    async def _unless_hurried(self, end: Coroutine[Any, Any, Any], until: float) -> None:
        """Wait for `end`, for a second signal, or until then."""
        waits = [asyncio.create_task(end), asyncio.create_task(self._hurry.wait())]
        left = max(0.0, until - self._loop.time())
        await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    def _fenced(self, attempt: Attempt) -> None:
        self.executor.lose(attempt)

    def _heard_of_leases(
        self, sent: Sequence[Attempt], answer: Mapping[tuple[UUID, int], bool]
    ) -> None:
        # The heartbeat's thread may answer once more while the loop is being closed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.executor.heard_of_leases, sent, answer)

    def _facts(self) -> WorkerFacts:
        return WorkerFacts(
            self.id,
            socket.gethostname(),
            os.getpid(),
            self.options.queues or (),
            self.options.concurrency,
        )
