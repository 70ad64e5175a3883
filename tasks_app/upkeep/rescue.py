"""Gives tasks whose worker has stopped answering to another attempt."""

from __future__ import annotations

from asyncpoll.contract import Status
from tasks_app import catalogue, conf
from tasks_app.events import emit
from tasks_app.insights.done import Done
from tasks_app.loops import Loop
from tasks_app.store import Rescued, rescue
from tasks_app.store.pool import Pool
from tasks_app.store.quarantine import despite_unfit
from tasks_app.wakeup import due

_BATCH = 500
# A short lease shall not wait longer for its rescuer than it lasted; an index scan that finds nothing is cheap.
_EVERY_SECONDS = 1.0


class Rescue(Loop):
    """Looks for expired leases once a second. Two processes never rescue the same task: locked rows are skipped."""

    name = "rescue"

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    async def step(self) -> float:
        """Rescue once; a full batch is followed by the next at once."""
        settings = conf.current()
        own = {
            task.name: (task.backoff.base, task.backoff.cap)
            for task in catalogue.known()
            if task.backoff is not None
        }
        call = rescue(_BATCH, settings.RETRY_BASE_SECONDS, settings.RETRY_MAX_SECONDS, own)
        rescued = await despite_unfit(self._pool, lambda: self._pool.run(call))
        for task in rescued:
            if task.status is Status.PENDING:
                due.tell(0.0)
            emit("task.rescued", id=task.id, status=task.status, version=task.version)
        if ended := [_done(task) for task in rescued if task.status.is_terminal]:
            emit("tasks.done", ended=ended)
        return 0.0 if len(rescued) == _BATCH else _EVERY_SECONDS


def _done(task: Rescued) -> Done:
    return Done(
        task.name,
        task.id,
        task.queue,
        task.attempt,
        task.status.value,
        task.ran_seconds * 1000,
        task.waited_seconds * 1000,
    )
