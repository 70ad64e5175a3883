"""The end of a worker whose event loop takes no part in it, since a task blocks that."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import FrameType

# Far longer than a loop that goes round takes to answer, on a machine that is busy as well.
_ANSWER_SECONDS = 2.0
_LOOK_EVERY_SECONDS = 0.5
_CHECK_EVERY_SECONDS = 5.0


class Patience(threading.Thread):
    """Runs out when the loop does not answer: after a first signal, once the grace is over or a second signal has come;
    before, once `is_overdue`. Then `give_up` is called, in this thread, with the exit code: 1 if nobody asked for the end.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        grace_seconds: float,
        is_overdue: Callable[[], bool],
        give_up: Callable[[int], None],
    ) -> None:
        super().__init__(name="asyncpoll-patience", daemon=True)
        self._loop = loop
        self._grace_seconds = grace_seconds
        self._is_overdue = is_overdue
        self._give_up = give_up
        self._is_over = False
        # Its put() may interrupt itself, as a signal can that comes right after another.
        self._heard: SimpleQueue[int] = SimpleQueue()

    def hear(self, numbers: Sequence[signal.Signals]) -> None:
        """Be told of these signals besides the loop, which has handlers for them already."""
        for number in numbers:
            signal.signal(number, self._hear)
            signal.siginterrupt(number, False)

    def end(self) -> None:
        """The worker has ended by itself."""
        self._is_over = True

    def run(self) -> None:
        """Wait for a first signal, for the end of the grace or a second one, and for the loop."""
        while not self._hears_within(_CHECK_EVERY_SECONDS):
            if self._is_overdue() and not self._loop_answers():
                self._run_out(1)
        self._hears_within(self._grace_seconds)
        while self._loop_answers():
            time.sleep(_LOOK_EVERY_SECONDS)
        self._run_out(0)

    def _run_out(self, code: int) -> None:
        if not self._is_over:
            self._give_up(code)

    def _hears_within(self, seconds: float) -> bool:
        with suppress(Empty):
            self._heard.get(timeout=seconds)
            return True
        return False

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._heard.put(number)

    def _loop_answers(self) -> bool:
        answered = threading.Event()
        # One that is closed has nothing to do any more.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(answered.set)
            return answered.wait(_ANSWER_SECONDS)
        return False
