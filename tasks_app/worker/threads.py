"""Threads for sync attempts. One that never returns costs itself and nobody else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeVar

R = TypeVar("R")
_Work = tuple[Callable[[], R], Callable[[R], None]]


class Threads:
    """Runs jobs at once, each in a thread: an idle one if there is any, else a new one.

    There is no limit here: whoever abandons a job may start another in its place. At most `keep` threads stay idle.
    They are daemons, so that an abandoned job can't keep the process alive.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._mutex = threading.Lock()
        self._idle: list[SimpleQueue[_Work]] = []

    def run(self, job: Callable[[], R], deliver: Callable[[R], None]) -> None:
        """Call `deliver(job())` in a thread. Neither may raise."""
        with self._mutex:
            inbox = self._idle.pop() if self._idle else None
        if inbox is None:
            inbox = SimpleQueue()
            threading.Thread(
                target=self._live, args=(inbox,), name="asyncpoll-task", daemon=True
            ).start()
        inbox.put((job, deliver))

    def _live(self, inbox: SimpleQueue[_Work]) -> None:
        keeps = True
        while keeps:
            job, deliver = inbox.get()
            result = job()
            # Idle before anybody hears of the result, so that the job which it makes room for finds this thread.
            keeps = self._rest(inbox)
            deliver(result)
            del job, deliver, result

    def _rest(self, inbox: SimpleQueue[_Work]) -> bool:
        with self._mutex:
            if len(self._idle) >= self._keep:
                return False
            self._idle.append(inbox)
            return True
