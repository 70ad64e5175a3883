"""One child after another, and one in place of another. Real processes, simple ones."""

from __future__ import annotations

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from asyncpoll.children import Child, End
from tests.support import aeventually


class Sleeper(Child):
    """Sleeps; comes up unless told otherwise."""

    first_pause_seconds = 0.3

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[End] = []
        self.comes_up = True

    async def start(self) -> Process:
        """One that does nothing."""
        return await asyncio.create_subprocess_exec("sleep", "600")

    async def is_up(self, process: Process) -> bool:
        """As told."""
        if not self.comes_up:
            process.terminate()
            await process.wait()
        return self.comes_up

    def died(self, end: End) -> None:
        """Remember."""
        self.ends.append(end)

    def process(self) -> Process:
        """The only one there is."""
        (process,) = self.processes
        return process


@asynccontextmanager
async def kept() -> AsyncIterator[Sleeper]:
    """A child that is kept running."""
    child = Sleeper()
    keeping = asyncio.create_task(child.keep())
    await aeventually(lambda: child.processes)
    try:
        yield child
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        await child.end()


async def test_a_replacement_is_no_death_and_is_kept_in_turn() -> None:
    """The old process is gone, the new one is there, and when that dies another follows."""
    async with kept() as child:
        first = child.process()
        assert await child.replace()
        second = child.process()
        assert (first.returncode, child.ends) == (-signal.SIGTERM, [])
        second.kill()
        await aeventually(lambda: child.ends)
        assert (child.ends[0].pid, child.ends[0].was_up) == (second.pid, True)
        await aeventually(lambda: child.processes)


async def test_one_that_is_replaced_while_it_waits_for_its_restart_has_one_successor() -> None:
    """The restart finds it there, and keeps that."""
    async with kept() as child:
        child.process().kill()
        await aeventually(lambda: child.ends)
        assert await child.replace()
        successor = child.process()
        successor.kill()
        await aeventually(lambda: len(child.ends) == 2)
        assert child.ends[1].pid == successor.pid


async def test_a_replacement_that_does_not_come_up_changes_nothing() -> None:
    """The old process lives, and it is no death of its."""
    async with kept() as child:
        first = child.process()
        child.comes_up = False
        assert not await child.replace()
        assert child.process() is first
        assert (first.returncode, child.ends) == (None, [])


async def test_one_that_dies_while_its_replacement_fails_is_a_death() -> None:
    """And then it is started again, as ever."""
    async with kept() as child:
        first = child.process()
        child.comes_up = False
        replacing = asyncio.create_task(child.replace())
        first.kill()
        assert not await replacing
        await aeventually(lambda: child.ends)
        child.comes_up = True
        assert child.ends[0].pid == first.pid
        await aeventually(lambda: child.processes)
