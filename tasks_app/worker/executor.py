"""Runs attempts: coroutines on the loop, functions in threads. Says how each ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from asyncpoll.contract import Status
from tasks_app import catalogue
from tasks_app.context import running
from tasks_app.events import emit
from tasks_app.store import Change, Claimed, Milestone
from tasks_app.worker.attempt import Attempt
from tasks_app.worker.calls import OwnThread, acall, call_in_thread, say_in_thread
from tasks_app.worker.deadlines import Deadline
from tasks_app.worker.held import Held
from tasks_app.worker.hiding import without_arguments
from tasks_app.worker.milestones import join
from tasks_app.worker.outcome import Ending, Fate, conclude, raised, release
from tasks_app.worker.recording import Settled
from tasks_app.worker.runnable import find
from tasks_app.worker.threads import Threads

# A coroutine whose attempt is over may clean up this long; one that ignores its cancellation is then left alone.
CLEAN_UP_SECONDS = 2.0


class Offer(Protocol):
    """Takes what an attempt has to say, to be committed; `settled` hears what became of it."""

    def __call__(
        self, attempt: Attempt, change: Change, settled: Settled | None = None
    ) -> None: ...


class Executor:
    """Lives on one event loop."""

    def __init__(self, held: Held, offer: Offer) -> None:
        self._held = held
        self._offer = offer
        self._threads = Threads(held.concurrency)
        self._draining = False
        self._early_cancels: set[UUID] | None = None
        self._left_behind: set[Attempt] = set()

    @property
    def stragglers(self) -> int:
        """How many functions and coroutines still run although their attempt is over."""
        return len(self._left_behind)

    def expect(self) -> None:
        """A claim is on its way: a cancel may be heard before the task it is for."""
        self._early_cancels = set()

    def accept(self, batch: Sequence[Claimed], lease_until: float) -> None:
        """Begin an attempt at each claimed task; once draining, give them back instead."""
        early, self._early_cancels = self._early_cancels or set(), None
        # Once: in Python 3.11 each look for the loop asks the kernel which process this is.
        loop = asyncio.get_running_loop()
        deadlines: dict[float, Deadline] = {}
        for claimed in batch:
            attempt = self._add(claimed, loop, lease_until)
            if self._draining:
                self._close(attempt, release(claimed))
                continue
            limit = claimed.timeout_seconds
            if limit not in deadlines:
                deadlines[limit] = Deadline(loop, limit, self._time_out)
            # Whatever is current in an attempt, its span above all, is so for it alone.
            copy_context().run(self._begin, attempt, deadlines[limit])
            if early and claimed.id in early:
                self._ask_to_stop(attempt)

    def cancel(self, task_id: UUID) -> None:
        """Somebody asked the task to stop. A coroutine is cancelled, a function sees `current_task().cancelled`."""
        attempt = self._held.find(task_id)
        if attempt is not None:
            self._ask_to_stop(attempt)
        elif self._early_cancels is not None:
            self._early_cancels.add(task_id)

    def heard_of_leases(
        self, sent: Sequence[Attempt], answer: Mapping[tuple[UUID, int], bool]
    ) -> None:
        """A heartbeat was answered: what is missing belongs to somebody else now, True stands for a cancel."""
        for attempt in sent:
            cancel_asked = answer.get((attempt.id, attempt.attempt))
            if cancel_asked:
                self._ask_to_stop(attempt)
            elif cancel_asked is None and attempt.fate is None and not attempt.is_over:
                emit("lease.lost", id=attempt.id, name=attempt.name, attempt=attempt.attempt)
                self.lose(attempt)

    def lose(self, attempt: Attempt) -> None:
        """The attempt no longer counts: nothing more of it is committed."""
        self._end_early(attempt, Fate.LOST)

    def drain(self) -> None:
        """Begin nothing more; what runs goes on."""
        self._draining = True

    async def release(self) -> None:
        """Give back what still runs. Coroutines get a moment to clean up, functions are left behind."""
        for attempt in self._held.all():
            self._end_early(attempt, Fate.RELEASED)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLEAN_UP_SECONDS * 1.5):
                await self._held.idle.wait()

    def _add(
        self, claimed: Claimed, loop: asyncio.AbstractEventLoop, lease_until: float
    ) -> Attempt:
        stale = self._held.find(claimed.id)
        if stale is not None:
            self.lose(stale)
        attempt = Attempt(claimed, loop, self._publish, lease_until)
        self._held.add(attempt)
        return attempt

    def _begin(self, attempt: Attempt, deadline: Deadline) -> None:
        claimed = attempt.claimed
        emit(
            "task.started",
            id=claimed.id,
            name=claimed.name,
            queue=claimed.queue,
            attempt=claimed.attempt,
            trace_context=claimed.trace_context,
        )
        loop = attempt.loop
        attempt.deadline = deadline
        deadline.guard(attempt)
        try:
            runnable = find(claimed)
        except Exception as error:
            # UnknownTask, or what its declaration raises: the batch's other tasks are to begin.
            self._finish(attempt, raised(error))
            return
        attempt.ended = runnable.ended
        if runnable.is_async:
            func = runnable.func
            if runnable.began is not None:
                func = partial(self._run_begun, runnable.began, func)
            attempt.begun = loop.create_task(self._run(attempt, func))
        else:
            self._run_in_thread(loop, attempt, runnable.func)

    async def _run(self, attempt: Attempt, func: Callable[..., Any]) -> None:
        # Not before: a task that is cancelled before its first step would never get here.
        attempt.task = attempt.begun
        running.set(attempt)
        thread = OwnThread()
        if attempt.cancelled:
            ending = raised(asyncio.CancelledError())
        else:
            ending = await acall(attempt.claimed, func)
        self._finish(attempt, ending)
        thread.end()
        attempt.task = None

    async def _run_begun(
        self,
        began: Callable[[], None],
        func: Callable[..., Any],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        loop = asyncio.get_running_loop()
        said = asyncio.Event()
        self._threads.run(
            partial(copy_context().run, say_in_thread, began),
            lambda _: _soon(loop, said.set),
        )
        await said.wait()
        return await func(*args, **kwargs)

    def _run_in_thread(
        self, loop: asyncio.AbstractEventLoop, attempt: Attempt, func: Callable[..., Any]
    ) -> None:
        context = copy_context()
        context.run(running.set, attempt)
        self._threads.run(
            partial(call_in_thread, context, attempt.claimed, func),
            partial(_soon, loop, self._finish, attempt),
        )

    def _publish(
        self, attempt: Attempt, milestone: Milestone, settled: Settled | None = None
    ) -> None:
        self._offer(attempt, _report(attempt, milestone), settled)

    def _ask_to_stop(self, attempt: Attempt) -> None:
        if attempt.cancel_asked or attempt.is_over:
            return
        attempt.cancel_asked = True
        _interrupt(attempt)

    def _time_out(self, attempt: Attempt) -> None:
        self._end_early(attempt, Fate.TIMED_OUT)

    def _end_early(self, attempt: Attempt, fate: Fate) -> None:
        if attempt.is_over or attempt.fate is not None:
            return
        attempt.fate = fate
        if attempt.task is None:
            self._abandon(attempt)
            return
        _interrupt(attempt)
        asyncio.get_running_loop().call_later(CLEAN_UP_SECONDS, self._abandon, attempt)

    def _abandon(self, attempt: Attempt) -> None:
        if not attempt.is_over:
            self._left_behind.add(attempt)
            self._finish(attempt, Ending(error_type=asyncio.CancelledError.__name__))

    def _finish(self, attempt: Attempt, ending: Ending) -> None:
        if attempt.is_over:
            # Abandoned before: nobody waits for this result any more.
            self._left_behind.discard(attempt)
            return
        change = conclude(
            attempt.claimed,
            ending,
            catalogue.retry_policy,
            fate=attempt.fate,
            cancelled=attempt.cancel_asked,
        )
        self._close(attempt, change)

    def _close(self, attempt: Attempt, change: Change | None) -> None:
        attempt.is_over = True
        attempt.duration_ms = (attempt.loop.time() - attempt.started_at) * 1000
        if attempt.deadline is not None:
            attempt.deadline.release(attempt)
        last = attempt.take_report()
        if change is None:
            self._held.finish(attempt)
            self._held.drop(attempt)
        else:
            change = change if last is None else join(_report(attempt, last), change)
            self._offer(attempt, change, self._settled(attempt, change))
        _tell(attempt, change)

    def _settled(self, attempt: Attempt, change: Change) -> Settled | None:
        """Frees the slot now; or, of a task that has something to say of its end, once that was said."""
        if attempt.ended is not None:
            return partial(self._say_end, attempt, change)
        self._held.finish(attempt)
        return None

    def _say_end(self, attempt: Attempt, change: Change, reason: str) -> None:
        committed = attempt.committed
        if attempt.ended is None or committed is None or not committed.status.is_terminal:
            self._held.finish(attempt)
            return
        loop = asyncio.get_running_loop()
        self._threads.run(
            partial(say_in_thread, partial(attempt.ended, change, committed, reason)),
            lambda _: _soon(loop, self._held.finish, attempt),
        )


def _report(attempt: Attempt, milestone: Milestone) -> Change:
    return Change(attempt.id, attempt.attempt, Status.RUNNING, (milestone,))


def _interrupt(attempt: Attempt) -> None:
    if attempt.task is not None:
        attempt.task.cancel()


def _soon(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: Any) -> None:
    # The loop of a worker that left this function behind is closed by now.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(callback, *args)


def _tell(attempt: Attempt, change: Change | None) -> None:
    claimed = attempt.claimed
    emit(
        "task.finished",
        id=claimed.id,
        name=claimed.name,
        attempt=claimed.attempt,
        status=None if change is None else change.status,
        error_type="" if change is None else change.error_type,
        error_message="" if change is None else without_arguments(claimed, change.error_message),
        retry_in_seconds=0.0 if change is None else change.delay_seconds,
        duration_ms=attempt.duration_ms,
        queue_wait_ms=claimed.queue_wait_seconds * 1000,
    )
