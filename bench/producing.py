"""Both ends of a process that enqueues tasks: it gets orders as lines, "COUNT BATCH", and answers when it did it."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from bench.child import Child


@dataclass(frozen=True, slots=True)
class Made:
    """An order was carried out between these times of the monotonic clock."""

    began: float
    ended: float


class Producer(Child):
    """Runs a command that serves orders, while entered."""

    def enqueue(self, count: int, batch: int) -> Made:
        """Have `count` tasks enqueued, `batch` to a call."""
        self.requests.write(f"{count} {batch}\n")
        self.requests.flush()
        answer = self.answers.readline()
        if not answer:
            raise self.failure("enqueued nothing")
        return Made(*json.loads(answer))


def serve(enqueue: Callable[[int], None]) -> None:
    """Carry orders out until there are no more; `enqueue` stores that many in one call."""
    for line in sys.stdin:
        began = time.monotonic()
        for size in _sizes(line):
            enqueue(size)
        _answer(began)


async def aserve(enqueue: Callable[[int], Awaitable[None]]) -> None:
    """`serve` on an event loop."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        began = time.monotonic()
        for size in _sizes(line):
            await enqueue(size)
        _answer(began)


def _sizes(order: str) -> Iterator[int]:
    count, batch = map(int, order.split())
    for done in range(0, count, batch):
        yield min(batch, count - done)


def _answer(began: float) -> None:
    print(json.dumps([began, time.monotonic()]), flush=True)
