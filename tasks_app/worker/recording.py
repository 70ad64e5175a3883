"""The steps of an attempt in a worker: read from the pool, recorded through the group commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, Protocol

from tasks_app.errors import LeaseLost, StoreUnavailable
from tasks_app.loops import pause_after
from tasks_app.stepbook import StepBook, known
from tasks_app.store import Claimed, Milestone, read_step
from tasks_app.store.pool import loop_pool
from tasks_app.worker.milestones import step_milestone

Settled = Callable[[str], None]
"""Told once, on the event loop: "" when a change is committed, else why it never will be."""

_LONGEST_PAUSE_SECONDS = 1.0


class Holder(Protocol):
    """The attempt that the steps are of. `lease_until` is a reading of time.monotonic()."""

    claimed: Claimed
    lease_until: float

    @property
    def counts(self) -> bool:
        """False once nothing more of the attempt is committed."""

    def publish_step(self, milestone: Milestone, settled: Settled) -> None:
        """Have the milestone committed. On the event loop."""


class RecordedSteps(StepBook):
    """Callable from any thread; its work is done on `loop`, the worker's."""

    def __init__(self, holder: Holder, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._holder = holder
        self._loop = loop
        self._recorded: set[str] = set()
        self._readers: set[asyncio.Task[None]] = set()

    def find(self, name: str) -> Future[str | None]:
        """As StepBook promises. A first attempt, which nobody came before, asks the database nothing."""
        if not self._holder.counts:
            raise self._lost(name, "the attempt is over")
        if self._holder.claimed.attempt == 1 and name not in self._recorded:
            return known(None)
        future: Future[str | None] = Future()
        self._loop.call_soon_threadsafe(self._begin_reading, name, future)
        return future

    def record(self, name: str, result: str) -> Future[None]:
        """As StepBook promises."""
        future: Future[None] = Future()

        def settled(reason: str) -> None:
            _settle(future, None, self._lost(name, reason) if reason else None)

        if not self._holder.counts:
            raise self._lost(name, "the attempt is over")
        self._recorded.add(name)
        milestone = step_milestone(name, result)
        self._loop.call_soon_threadsafe(self._holder.publish_step, milestone, settled)
        return future

    def _begin_reading(self, name: str, future: Future[str | None]) -> None:
        # A task of its own: a coroutine that is cancelled must not cut a query of the pool's in half.
        reader = self._loop.create_task(self._read(name, future))
        self._readers.add(reader)
        reader.add_done_callback(self._readers.discard)

    async def _read(self, name: str, future: Future[str | None]) -> None:
        try:
            _settle(future, await self._read_while_held(name))
        except Exception as error:
            # Whatever it is belongs to the step that waits.
            _settle(future, None, error)
        except asyncio.CancelledError:
            _settle(future, None, self._lost(name, "the worker stopped"))
            raise

    async def _read_while_held(self, name: str) -> str | None:
        failures = 0
        while True:
            try:
                return await (await loop_pool()).run(read_step(self._holder.claimed.id, name))
            except StoreUnavailable as error:
                if not self._holder.counts or self._holder.lease_until < time.monotonic():
                    raise self._lost(name, f"the database is away: {error}") from error
                failures += 1
                await asyncio.sleep(pause_after(failures, _LONGEST_PAUSE_SECONDS))

    def _lost(self, name: str, reason: str) -> LeaseLost:
        claimed = self._holder.claimed
        return LeaseLost(
            f"Step {name!r} of {claimed.name} {claimed.id} attempt {claimed.attempt} was not recorded: {reason}. If "
            "the task is not over, another attempt does the step again; end this one."
        )


def _settle(future: Future[Any], value: Any, error: Exception | None = None) -> None:
    # Whoever waited may have been cancelled, and the future with them.
    with suppress(InvalidStateError):
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
