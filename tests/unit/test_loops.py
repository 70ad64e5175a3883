"""A loop goes on until it is stopped, and then it ends."""

from __future__ import annotations

import asyncio

from tasks_app.loops import Loop
from tests.support import aeventually


class Careless(Loop):
    """Its step takes a cancellation for an error, as library code may."""

    name = "careless"

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    async def step(self) -> float:
        """Never returns."""
        self.steps += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("closed") from None
        return 0.0


async def test_a_loop_whose_cancellation_was_lost_ends_all_the_same() -> None:
    """It would go on for ever, beside whatever was started after it."""
    before = asyncio.all_tasks()
    loop = Careless()
    loop.start()
    await aeventually(lambda: loop.steps)
    await loop.stop()
    assert asyncio.all_tasks() == before
    assert loop.steps == 1
