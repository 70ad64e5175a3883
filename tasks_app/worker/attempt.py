"""One attempt at one task: what `current_task()` gives to the task, and what the executor keeps of it."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any, Protocol
from uuid import UUID

from tasks_app import conf
from tasks_app.errors import Cancelled
from tasks_app.stepbook import StepBook
from tasks_app.store import Claimed, Committed, Milestone
from tasks_app.worker.milestones import fold, progress_milestone, window_seconds
from tasks_app.worker.outcome import Fate
from tasks_app.worker.recording import RecordedSteps, Settled
from tasks_app.worker.runnable import Ended

# Of the milestones a task may have, its last report and its end have a place of their own.
_RESERVED_EVENTS = 2


class Guard(Protocol):
    """Ends an attempt that runs too long."""

    def release(self, attempt: Attempt) -> None:
        """It is over."""


class Publish(Protocol):
    """Has a milestone of an attempt committed; `settled` hears what became of it."""

    def __call__(
        self, attempt: Attempt, milestone: Milestone, settled: Settled | None = None
    ) -> None: ...


class Attempt:
    """Made on the event loop, which alone changes it; `report`, `cancelled` and `take_report` work from any thread.

    `lease_until` is a reading of time.monotonic(), `committed` what became visible of it last; `duration_ms` is said
    once it is over.
    """

    __slots__ = (
        "_budget",
        "_mutex",
        "_next_report_at",
        "_publish",
        "_steps",
        "_unpublished",
        "_window_open",
        "begun",
        "cancel_asked",
        "claimed",
        "committed",
        "deadline",
        "duration_ms",
        "ended",
        "fate",
        "is_over",
        "lease_until",
        "loop",
        "started_at",
        "task",
    )

    def __init__(
        self,
        claimed: Claimed,
        loop: asyncio.AbstractEventLoop,
        publish: Publish,
        lease_until: float,
    ) -> None:
        self.claimed = claimed
        self.lease_until = lease_until
        self.started_at = loop.time()
        self.cancel_asked = claimed.cancel_requested
        self.fate: Fate | None = None
        self.is_over = False
        self.duration_ms = 0.0
        self.committed: Committed | None = None
        self.ended: Ended | None = None
        # From its making, and from its first step on: one that was cancelled before that would never run.
        self.begun: asyncio.Task[None] | None = None
        self.task: asyncio.Task[None] | None = None
        self.deadline: Guard | None = None
        self.loop = loop
        self._publish = publish
        self._mutex = threading.Lock()
        self._unpublished: Milestone | None = None
        self._steps: RecordedSteps | None = None
        self._window_open = False
        self._next_report_at = 0.0
        self._budget = conf.current().MAX_EVENTS - claimed.version - _RESERVED_EVENTS

    @property
    def id(self) -> UUID:
        """The task's id."""
        return self.claimed.id

    @property
    def name(self) -> str:
        """The task's declared name."""
        return self.claimed.name

    @property
    def owner(self) -> str:
        """Whom the task belongs to."""
        return self.claimed.owner

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self.claimed.attempt

    @property
    def version(self) -> int:
        """Of the task, as far as its database has told us."""
        return self.claimed.version if self.committed is None else self.committed.version

    @property
    def cancelled(self) -> bool:
        """True once the task was asked to stop, or its result no longer counts."""
        return self.cancel_asked or self.fate is not None

    @property
    def counts(self) -> bool:
        """False once the attempt is over, or nothing more of it is committed."""
        return not self.is_over and self.fate is None

    @property
    def steps(self) -> StepBook:
        """The task's steps; most tasks have none and never make this."""
        with self._mutex:
            if self._steps is None:
                self._steps = RecordedSteps(self, self.loop)
            return self._steps

    def raise_if_cancelled(self) -> None:
        """Raise Cancelled once `cancelled` is true."""
        if self.cancelled:
            raise Cancelled(self.name, self.id)

    def report(
        self, progress: float | None = None, message: str = "", data: dict[str, Any] | None = None
    ) -> None:
        """Make a milestone visible, as `CurrentTask.report` promises."""
        milestone = progress_milestone(progress, message, data)
        with self._mutex:
            self._unpublished = fold(self._unpublished, milestone)
            if self._window_open or self.is_over:
                return
            self._window_open = True
        # The loop is closed once the worker has gone; then nobody is left to tell.
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._await_window)

    def publish_step(self, milestone: Milestone, settled: Settled) -> None:
        """Have a step committed, after what was reported before it. On the event loop."""
        if not self.counts:
            settled("the attempt is over")
            return
        if self._budget > 0 and (reported := self.take_report()) is not None:
            self._budget -= 1
            self._publish(self, reported)
        self._budget -= 1
        self._publish(self, milestone, settled)

    def take_report(self) -> Milestone | None:
        """What was reported and not published yet; it is the caller's to publish."""
        with self._mutex:
            milestone, self._unpublished = self._unpublished, None
            self._window_open = False
            return milestone

    def _await_window(self) -> None:
        wait = self._next_report_at - self.loop.time()
        if wait > 0:
            self.loop.call_later(wait, self._publish_report)
        else:
            self._publish_report()

    def _publish_report(self) -> None:
        # Past the budget reports only fold, until the outcome takes the last one along.
        if self.is_over or self.fate is not None or self._budget <= 0:
            return
        milestone = self.take_report()
        if milestone is not None:
            self._budget -= 1
            now = self.loop.time()
            self._next_report_at = now + window_seconds(now - self.started_at)
            self._publish(self, milestone)
