"""Somebody who goes on using the database."""

from __future__ import annotations

import random
import threading
import time
from contextlib import closing
from dataclasses import dataclass, replace
from uuid import UUID

from bench.store import StoreConnection, new_task
from tasks_app.store import enqueue, notify

TASK = "bench.constant"
_QUEUE = "default"
_PAUSE_SECONDS = (0.002, 0.008)
_WITHIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A task was stored, and its worker told, in so many milliseconds from `began` on, by the monotonic clock."""

    id: UUID
    began: float
    took_ms: float


class Others:
    """Enqueues a task every few milliseconds, at no regular beat."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.enqueued: list[Enqueued] = []

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End; what was enqueued may still be running."""
        self._stopping.set()
        self._thread.join(_WITHIN_SECONDS)

    def _run(self) -> None:
        with closing(StoreConnection(self._url)) as store:
            while not self._stopping.wait(random.uniform(*_PAUSE_SECONDS)):
                task = replace(new_task(_QUEUE), name=TASK)
                began = time.monotonic()
                store.run(enqueue([task]))
                store.run(notify([_QUEUE]))
                took_ms = (time.monotonic() - began) * 1e3
                self.enqueued.append(Enqueued(task.id, began, took_ms))
