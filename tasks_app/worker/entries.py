"""What waits to be committed, one entry for each task, and what a commit of it says."""

from __future__ import annotations

from typing import NamedTuple

from tasks_app.insights.done import Done
from tasks_app.store import Change, Committed
from tasks_app.worker.attempt import Attempt
from tasks_app.worker.recording import Settled


class Entry(NamedTuple):
    """A change, the attempt that it is of, and who waits for its commit. `tries` found its row locked; the next is due
    at `due_at`, a reading of time.monotonic()."""

    attempt: Attempt
    change: Change
    waiting: tuple[Settled, ...] = ()
    tries: int = 0
    due_at: float = 0.0

    def settle(self, reason: str = "") -> None:
        """Tell whoever waits: it is committed, or the reason why it is not."""
        for settled in self.waiting:
            settled(reason)


def done(attempt: Attempt, task: Committed) -> Done:
    """What is told of a task that has ended."""
    claimed = attempt.claimed
    return Done(
        claimed.name,
        claimed.id,
        claimed.queue,
        claimed.attempt,
        task.status.value,
        attempt.duration_ms,
        claimed.queue_wait_seconds * 1000,
    )


def weight(change: Change) -> int:
    """Of a change, in characters, about."""
    first = change.milestones[0]
    if len(change.milestones) == 1 and first.data is None and first.step is None:
        return len(change.result or "") + len(change.traceback)
    data = sum(len(milestone.data) for milestone in change.milestones if milestone.data)
    steps = sum(len(milestone.step.result) for milestone in change.milestones if milestone.step)
    return len(change.result or "") + len(change.traceback) + data + steps
