"""What waits to be committed, one entry for each task, and what a commit of it says."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from tasks_app.insights.done import Done
from tasks_app.store import Change, Committed
from tasks_app.worker.attempt import Attempt
from tasks_app.worker.recording import Settled

# Large enough that the statement's own cost no longer shows, small enough that its locks don't last.
_MOST_CHANGES = 500
# Bounds the memory of one statement; a single change may exceed it.
_MOST_CHARACTERS = 4_000_000
# A row that is locked, by a heartbeat for an instant or by an admin for minutes, is tried again after this long, doubling
# up to that long.
_FIRST_LOCKED_SECONDS = 0.005
_LONGEST_LOCKED_SECONDS = 0.5


class Entry(NamedTuple):
    """A change, the attempt that it is of, and who waits for its commit. `tries` found its row locked; the next is due
    at `due_at`, a reading of time.monotonic()."""

    attempt: Attempt
    change: Change
    waiting: tuple[Settled, ...] = ()
    tries: int = 0
    due_at: float = 0.0

    def set_aside(self, now: float) -> Entry:
        """The same after one more try that found its row locked."""
        pause = min(_LONGEST_LOCKED_SECONDS, _FIRST_LOCKED_SECONDS * 2 ** min(self.tries, 10))
        return self._replace(tries=self.tries + 1, due_at=now + pause)

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


def take(gathered: dict[UUID, Entry]) -> dict[UUID, Entry]:
    """Take out of `gathered` as many from its beginning as one statement may have."""
    batch: dict[UUID, Entry] = {}
    characters = 0
    for task_id, entry in gathered.items():
        characters += _weight(entry.change)
        if batch and (len(batch) >= _MOST_CHANGES or characters > _MOST_CHARACTERS):
            break
        batch[task_id] = entry
    for task_id in batch:
        del gathered[task_id]
    return batch


def _weight(change: Change) -> int:
    """Of a change, in characters, about."""
    first = change.milestones[0]
    if len(change.milestones) == 1 and first.data is None and first.step is None:
        return len(change.result or "") + len(change.traceback)
    data = sum(len(milestone.data) for milestone in change.milestones if milestone.data)
    steps = sum(len(milestone.step.result) for milestone in change.milestones if milestone.step)
    return len(change.result or "") + len(change.traceback) + data + steps
