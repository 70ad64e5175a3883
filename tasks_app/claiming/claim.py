"""One claim, within the limits of running tasks where there are any."""

from __future__ import annotations

from typing import Protocol, TypeVar
from uuid import UUID

from tasks_app import conf
from tasks_app.claiming.room import Room
from tasks_app.claiming.turns import Turns
from tasks_app.store import Call, Claimed, Lane, claim, lock_claims, running
from tasks_app.store.results import adopted

T = TypeVar("T")


class Runner(Protocol):
    """A pool, or a transaction of one."""

    async def run(self, call: Call[T]) -> T:
        """Execute `call`."""


async def take(
    runner: Runner, turns: Turns, worker: UUID, places: int, lease_seconds: float
) -> list[Claimed] | None:
    """Claim at most `places` tasks of the lanes that `turns` knows, whose turn it is. None: no limit leaves room.

    Where settings limit running tasks, `runner` has to be a transaction: two claims that count the same free place
    and both take it are kept apart by a lock that lasts as long.
    """
    shares = turns.allot(places, await _room(runner))
    if not shares:
        return None
    batch = await runner.run(claim(worker, shares, lease_seconds))
    turns.settle(shares, (Lane(task.queue, task.owner) for task in batch))
    return await _told(runner, batch)


async def _told(runner: Runner, batch: list[Claimed]) -> list[Claimed]:
    """With what tasks of Django's Tasks framework are told of their attempts, which most batches need not wait for."""
    ids = [task.id for task in batch if task.backend]
    if not ids:
        return batch
    facts = await runner.run(adopted(ids))
    return [task._replace(adopted=facts.get(task.id)) if task.backend else task for task in batch]


async def _room(runner: Runner) -> Room | None:
    settings = conf.current()
    if not settings.limits_running:
        return None
    await runner.run(lock_claims())
    # A statement of its own, after the lock: it has to see what the claim before it took.
    counts = await runner.run(running())
    return Room(settings.MAX_RUNNING_PER_QUEUE, settings.MAX_RUNNING_PER_OWNER, counts)
