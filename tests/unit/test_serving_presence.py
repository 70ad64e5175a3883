"""A client that hangs up ends its request, and nothing else does it in its name."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tasks_app.serving.presence import Presence
from tests.support import PATIENCE_SECONDS


async def _gone() -> dict[str, Any]:
    return {"type": "http.disconnect"}


async def _stays() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_client_that_goes_ends_the_block_without_an_error() -> None:
    """The cancellation is swallowed and leaves no trace on the task."""
    with Presence(_gone):
        await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0.1)  # would raise if one were still on its way


async def test_a_swallowed_cancellation_is_repeated() -> None:
    """Code that survives one cancellation does not survive the next."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        await _survive_two_cancellations()


async def _survive_two_cancellations() -> None:
    times = 0
    with Presence(_gone):
        while times < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                times += 1
    assert times == 2


async def test_an_answer_given_in_spite_of_the_cancellation_leaves_the_task_clean() -> None:
    """A view may catch the cancellation and return; what follows must not be cancelled for it."""
    task = asyncio.current_task()
    assert task is not None
    with Presence(_gone), suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    assert task.cancelling() == 0
    async with asyncio.timeout(5):
        await asyncio.sleep(0)


async def test_a_cancellation_by_somebody_else_goes_on() -> None:
    """A server that cancels a request must see it end as cancelled."""

    async def serve() -> None:
        with Presence(_stays):
            await asyncio.Event().wait()

    task = asyncio.create_task(serve())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_time_limit_around_the_block_still_works() -> None:
    """The caller's own asyncio.timeout must not be mistaken for the client's leaving."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            with Presence(_stays):
                await asyncio.Event().wait()


async def test_nothing_keeps_watching_after_the_block() -> None:
    """The watcher ends with the request, or each answer would leave a task behind."""
    before = asyncio.all_tasks()
    with Presence(_stays):
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_failure_is_not_swallowed() -> None:
    """Only cancellation is."""
    with pytest.raises(RuntimeError, match="broken"), Presence(_stays):
        raise RuntimeError("broken")
