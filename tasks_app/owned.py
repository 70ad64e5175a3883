"""Database work on behalf of a request, in a task of its own.

A client that hangs up cancels its request; a query cancelled half-way costs the pool its connection. So a request
never awaits the database itself: it awaits a task that outlives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_running: set[asyncio.Task[Any]] = set()


async def owned(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end whatever happens to the caller, and give its result to a caller that is still there."""
    task = asyncio.ensure_future(work)
    _running.add(task)
    task.add_done_callback(_finished)
    return await asyncio.shield(task)


def _finished(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if not task.cancelled():
        task.exception()  # a caller that has gone does not fetch it; asyncio would log it as never retrieved
