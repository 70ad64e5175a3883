"""What the store's claim and commit cost beside ever more tasks that have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from statistics import median
from typing import TypeVar

from uuid_utils.compat import uuid7

from bench.database import Databases
from bench.errors import BenchError
from bench.figures import in_turns
from bench.store import StoreConnection, new_task, success, take
from bench.worker.figures import Cost
from bench.worker.filling import fill
from tasks_app.store import Call, commit, enqueue

T = TypeVar("T")

BATCH = 50
_QUEUE = "bench"
_WARM_UPS = 10
# Each adds a batch of finished tasks everywhere; more would change what the smallest table is.
_ROUNDS = 60


def measure(databases: Databases, sizes: Sequence[int], say: Callable[[str], None]) -> list[Cost]:
    """A database for each of `sizes`, all measured in turns, so that a change of pace meets all of them."""
    with ExitStack() as stack:
        tables = []
        for size in sizes:
            say(f"asyncpoll, {size:,} finished tasks …")
            url = stack.enter_context(databases.fresh())
            store = stack.enter_context(closing(StoreConnection(url)))
            fill(store, size)
            tables.append(_Table(store, size))
        for table in in_turns(tables, _WARM_UPS + _ROUNDS):
            table.round()
        return [table.cost() for table in tables]


class _Table:
    def __init__(self, store: StoreConnection, finished: int) -> None:
        self._store = store
        self._finished = finished
        self._worker = uuid7()
        self._claims: list[tuple[float, float]] = []
        self._commits: list[tuple[float, float]] = []

    def round(self) -> None:
        """Enqueue, claim and commit a batch."""
        self._store.run(enqueue([new_task(_QUEUE) for _ in range(BATCH)]))
        claimed = self._timed(take(self._worker, BATCH, _QUEUE), self._claims)
        self._timed(commit(self._worker, [success(task.id) for task in claimed]), self._commits)

    def cost(self) -> Cost:
        """The medians of the rounds after the warm-up."""
        return Cost(self._finished, *_medians(self._claims), *_medians(self._commits))

    def _timed(self, call: Call[list[T]], into: list[tuple[float, float]]) -> list[T]:
        cpu, began = self._store.cpu_seconds(), time.monotonic()
        answer = self._store.run(call)
        ended = time.monotonic()
        if len(answer) != BATCH:
            raise BenchError(
                f"{call.statement} gave {len(answer)} tasks instead of {BATCH} beside {self._finished:,} finished ones."
            )
        into.append((ended - began, self._store.cpu_seconds() - cpu))
        return answer


def _medians(times: Sequence[tuple[float, float]]) -> tuple[float, float]:
    seconds, cpu_seconds = zip(*times[_WARM_UPS:], strict=True)
    return median(seconds) / BATCH * 1e6, median(cpu_seconds) / BATCH * 1e6
