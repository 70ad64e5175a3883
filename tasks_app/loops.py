"""The base of every background loop: do one step, sleep as long as the step says, survive its errors."""

from __future__ import annotations

import asyncio
import random

from tasks_app.events import emit

# A failing step is tried again after this long, doubling to the loop's cap, so that an outage is not a storm.
_FIRST_PAUSE_SECONDS = 0.1


class Loop:
    """Runs `step()` again and again in one asyncio task. A subclass gives `name` and `step`."""

    name = "loop"
    longest_pause_seconds = 5.0

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures = 0

    @property
    def is_failing(self) -> bool:
        """True from a step that raised to the next that did not."""
        return self._failures > 0

    async def step(self) -> float:
        """Do one round; returns the seconds to sleep before the next (`wake()` cuts it short)."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin looping on the running event loop. A second call does nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"asyncpoll:{self.name}")

    @property
    def is_woken(self) -> bool:
        """True when it will go round once more without a sleep."""
        return self._woken.is_set()

    def wake(self) -> None:
        """End the present sleep. Waking a loop in the middle of a step makes it go round once more."""
        self._woken.set()

    async def stop(self, within: float = 2.0) -> None:
        """Cancel the loop and wait for it, at most `within` seconds."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        await asyncio.wait({task}, timeout=within)

    async def _run(self) -> None:
        while True:
            self._woken.clear()
            try:
                pause = await self.step()
            except Exception as error:
                if asyncio.current_task() is not self._task:
                    # Stopped: the cancellation was lost in what failed, as connection pools can lose it.
                    return
                # Whatever it is: a loop that ended would not be missed before its work is.
                # Not cut short by wake(): whoever wakes a loop in an outage would make it a storm.
                await asyncio.sleep(self._note_failure(error))
                continue
            if self._failures:
                emit("loop.recovered", loop=self.name, failures=self._failures)
                self._failures = 0
            await self._rest(pause)

    async def _rest(self, pause: float) -> None:
        if pause <= 0 or self._woken.is_set():
            await asyncio.sleep(0)
            return
        # Not asyncio.timeout(): two loops are woken between a commit and its answer, and it costs more than the wait.
        timer = asyncio.get_running_loop().call_later(pause, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()

    def _note_failure(self, error: Exception) -> float:
        self._failures += 1
        pause = pause_after(self._failures, self.longest_pause_seconds)
        emit("loop.failed", loop=self.name, error=error, failures=self._failures, pause=pause)
        return pause


def pause_after(failures: int, longest_seconds: float) -> float:
    """Seconds to wait after `failures` in a row: exponential, with jitter, from 0.1 s to `longest_seconds`.

    Formula: min(longest, 0.1 · 2^(failures - 1)), times a random factor in [0.25, 1].
    """
    ceiling = min(longest_seconds, _FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 16))
    return ceiling * random.uniform(0.25, 1.0)
