"""Work that takes long is done beside the event loop, so that held requests are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

T = TypeVar("T")

LARGE_BYTES = 65_536
"""A body beyond this may take long to check."""
# They share one interpreter with the loop: more would be no faster, and the loop would wait for its turn among more.
_THREADS = 2

_threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="asyncpoll-beside")


async def beside_the_loop(work: Callable[[], T]) -> T:
    """What `work()` returns, from one of few threads. Begins in the order of the calls; a client that leaves frees its turn."""
    within = partial(copy_context().run, work)
    return await asyncio.get_running_loop().run_in_executor(_threads, within)
