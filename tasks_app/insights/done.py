"""The line of a task that is over: what a worker logs and `pollplan` reads."""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from typing import Any, Final, NamedTuple
from uuid import UUID

ASYNC_TASK_DONE: Final = "ASYNC_TASK_DONE"


class Done(NamedTuple):
    """A task that is over. `task` is its type; times are of the `attempt` that ended it, in milliseconds."""

    task: str
    task_id: UUID
    queue: str
    attempt: int
    outcome: str
    duration_ms: float
    queue_wait_ms: float

    def line(self, at: str) -> str:
        """As one line of JSON, with the time `at` it was committed."""
        # By hand, as a worker does it thousands of times a second: a third of what json.dumps takes.
        return (
            f'{{"event": "{ASYNC_TASK_DONE}", "at": "{at}", "task": {encode_basestring_ascii(self.task)}, '
            f'"task_id": "{self.task_id}", "queue": {encode_basestring_ascii(self.queue)}, '
            f'"attempt": {self.attempt}, "outcome": "{self.outcome}", '
            f'"duration_ms": {self.duration_ms:.3f}, "queue_wait_ms": {self.queue_wait_ms:.3f}}}'
        )

    def fields(self) -> dict[str, Any]:
        """By name, with the id as text."""
        return {
            "task": self.task,
            "task_id": str(self.task_id),
            "queue": self.queue,
            "attempt": self.attempt,
            "outcome": self.outcome,
            "duration_ms": self.duration_ms,
            "queue_wait_ms": self.queue_wait_ms,
        }
