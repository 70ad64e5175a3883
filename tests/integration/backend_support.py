"""What tests of the framework's backend share: TASKS, ears for the signals of a worker, and how to run a task."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.dispatch import Signal

from tasks_app.compat import task_backends, task_finished, task_started
from tests.support import aeventually
from tests.workers import ended

BACKEND = "tasks_app.backend.TasksBackend"
NAMES = {task_started: "started", task_finished: "finished"}


def configure(settings: Any) -> None:
    """TASKS with a backend of ours, one that tries again, and one that is impatient."""
    settings.TASKS = {
        "default": {"BACKEND": BACKEND, "QUEUES": ["default", "reports"]},
        "again": {"BACKEND": BACKEND, "OPTIONS": {"max_attempts": 3}},
        "brief": {"BACKEND": BACKEND, "OPTIONS": {"timeout": 0.3}},
    }
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "RETRY_BASE_SECONDS": 0.001}


@dataclass(slots=True)
class Heard:
    """A signal as it was received: `error` is what sys.exc_info() gave, `stored` the row's status at that time."""

    name: str
    sender: type
    result: Any
    error: BaseException | None
    thread: str
    stored: str | None = None


@dataclass(slots=True, weakref_slot=True)
class Ears:
    """What was heard, and the receiver that hears it."""

    heard: list[Heard] = field(default_factory=list)

    def __call__(self, signal: Signal, sender: type, task_result: Any, **kwargs: Any) -> None:
        entry = Heard(
            NAMES[signal], sender, task_result, sys.exc_info()[1], threading.current_thread().name
        )
        if signal is task_finished:
            entry.stored = task_backends["default"].get_result(task_result.id).status
        self.heard.append(entry)

    def of(self, result: Any) -> list[Heard]:
        """What was heard of one task."""
        return [entry for entry in self.heard if entry.result.id == result.id]

    def names(self, result: Any) -> list[str]:
        """The signals of one task, in their order."""
        return [entry.name for entry in self.of(result)]

    async def finished(self, result: Any) -> Heard:
        """The task_finished of one task, once it is heard."""
        await aeventually(lambda: "finished" in self.names(result))
        return self.of(result)[-1]


@contextmanager
def receiving(receiver: Any, *signals: Signal) -> Iterator[None]:
    """Have `receiver` hear these meanwhile."""
    for signal in signals:
        signal.connect(receiver)
    yield
    for signal in signals:
        signal.disconnect(receiver)


async def run(task, *args, **kwargs):
    """Enqueue a task, wait for its end, and give its result as it is then."""
    result = await task.aenqueue(*args, **kwargs)
    await ended(UUID(result.id))
    await result.arefresh()
    return result
