"""Deletes tasks that ended long ago, and what is left of others, in batches that each commit on their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tasks_app import conf
from tasks_app.events import emit
from tasks_app.loops import Loop
from tasks_app.store import (
    Call,
    prune,
    prune_deliveries,
    prune_inboxes,
    prune_keys,
    prune_orphans,
    prune_workers,
    revisit_deliveries,
)
from tasks_app.store.driver import run
from tasks_app.store.pool import Pool

_EVERY_SECONDS = 300.0
# Between two batches, so that a backlog of a million leaves the database to others for most of the time.
_BREATH_SECONDS = 0.1
_SECONDS_PER_DAY = 86_400.0
_LOWEST_ID = UUID(int=0)

Round = Generator[Call[Any], Any, "Pruned"]


@dataclass(slots=True)
class Pruned:
    """What a round deleted: `tasks` in so many `batches`, history rows without a task, worker processes, idempotency
    keys, deliveries that are over, inbox entries."""

    tasks: int = 0
    batches: int = 0
    orphans: int = 0
    workers: int = 0
    keys: int = 0
    deliveries: int = 0
    entries: int = 0


def expiring(batch: int, alone: bool) -> Round:
    """What has an end of its own, however long tasks are kept: idempotency keys, entries that nobody acknowledges.

    And deliveries whose task's end went unnoticed are found.
    """
    pruned = Pruned()
    pruned.keys = yield from _in_batches(lambda: prune_keys(batch, alone), batch)
    after: UUID | None = _LOWEST_ID
    while after is not None:
        _, after = yield revisit_deliveries(batch, after, alone)
    ignored = conf.current().INBOX_DAYS * _SECONDS_PER_DAY or None
    pruned.entries = yield from _in_batches(
        lambda: prune_inboxes(None, ignored, batch, alone), batch
    )
    return pruned


def _in_batches(call: Callable[[], Call[int]], batch: int) -> Generator[Call[int], int, int]:
    total = 0
    while True:
        deleted = yield call()
        total += deleted
        if deleted < batch:
            return total


def pruning(older_than_seconds: float, batch: int, alone: bool) -> Round:
    """One round, as the calls to run one after the other, each in its own transaction; is sent what each gave.

    `alone`: while somebody else prunes, there is nothing to do.
    """
    pruned = yield from expiring(batch, alone)
    ended = None
    while True:
        tasks = yield prune(older_than_seconds, batch, ended, alone)
        pruned.tasks += tasks.deleted
        pruned.batches += bool(tasks.deleted)
        if tasks.deleted < batch:
            break
        ended = tasks.cursor
    after = None
    while True:
        orphans = yield prune_orphans(older_than_seconds, batch, after, alone)
        pruned.orphans += orphans.deleted
        after = orphans.cursor
        if after is None:
            break
    pruned.workers = yield prune_workers(older_than_seconds)
    pruned.deliveries = yield from _in_batches(
        lambda: prune_deliveries(older_than_seconds, batch, alone), batch
    )
    pruned.entries += yield from _in_batches(
        lambda: prune_inboxes(older_than_seconds, None, batch, alone), batch
    )
    return pruned


def prune_now(older_than_seconds: float, batch: int) -> Pruned:
    """A whole round on Django's own connection, beside whoever else prunes."""
    calls = pruning(older_than_seconds, batch, alone=False)
    answer: Any = None
    while True:
        try:
            call = calls.send(answer)
        except StopIteration as end:
            return end.value
        answer = run(call)


class Pruning(Loop):
    """A round every five minutes, with a pause after each batch. RETENTION_DAYS of 0 keeps all tasks."""

    name = "pruning"

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    async def step(self) -> float:
        """One round."""
        settings = conf.current()
        retention, batch = settings.RETENTION_DAYS * _SECONDS_PER_DAY, settings.PRUNE_BATCH
        await self._prune(
            pruning(retention, batch, alone=True) if retention else expiring(batch, alone=True)
        )
        return _EVERY_SECONDS

    async def _prune(self, calls: Round) -> None:
        answer: Any = None
        while True:
            try:
                call = calls.send(answer)
            except StopIteration as end:
                pruned: Pruned = end.value
                break
            answer = await self._pool.run(call)
            await asyncio.sleep(_BREATH_SECONDS)
        if pruned != Pruned():
            emit(
                "tasks.pruned",
                count=pruned.tasks,
                batches=pruned.batches,
                orphans=pruned.orphans,
                workers=pruned.workers,
                keys=pruned.keys,
                deliveries=pruned.deliveries,
                entries=pruned.entries,
            )
