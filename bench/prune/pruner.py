"""Prunes for as long as it is told to, and goes on from there the next time."""

from __future__ import annotations

import time
from typing import Any

from bench.store import StoreConnection
from tasks_app.store import Call
from tasks_app.upkeep import Pruned, pruning

_BATCH = 1_000


class Pruner:
    """The statements of one round of pruning, each in its own transaction, and the milliseconds that they took."""

    def __init__(self, store: StoreConnection, older_than_seconds: float) -> None:
        self._store = store
        self._round = pruning(older_than_seconds, _BATCH, alone=False)
        self._next: Call[Any] | None = next(self._round)
        self._pruned = Pruned()
        self.seconds = 0.0
        self.batches: list[float] = []
        self.longest_else = 0.0
        """Of the statements that delete no tasks: they look for history without one, for keys and entries."""

    @property
    def is_through(self) -> bool:
        """True when nothing is left to delete."""
        return self._next is None

    @property
    def deleted(self) -> int:
        """How many tasks, once it is through."""
        return self._pruned.tasks

    def work(self, seconds: float) -> None:
        """Prune for so long, or until it is through."""
        until = time.monotonic() + seconds
        while self._next is not None and (began := time.monotonic()) < until:
            answer = self._store.run(self._next)
            self._count(self._next.statement, time.monotonic() - began)
            try:
                self._next = self._round.send(answer)
            except StopIteration as end:
                self._next, self._pruned = None, end.value

    def _count(self, statement: str, seconds: float) -> None:
        self.seconds += seconds
        if statement == "prune":
            self.batches.append(seconds * 1e3)
        else:
            self.longest_else = max(self.longest_else, seconds * 1e3)
