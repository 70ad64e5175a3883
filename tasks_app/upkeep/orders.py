"""Carries out actions over all that a filter matches: in batches, to no more tasks than were counted."""

from __future__ import annotations

from uuid import UUID

from tasks_app.events import emit
from tasks_app.limits import new_task_id
from tasks_app.loops import Loop
from tasks_app.store import (
    Snapshot,
    Taken,
    cancel,
    delete,
    list_tasks,
    notify,
    record_order,
    requeue,
    run_again,
    take_order,
)
from tasks_app.store.pool import Pool, Transaction

_BATCH = 200
# Somebody looks at a page that says how far it is.
_EVERY_SECONDS = 2.0
_BREATH_SECONDS = 0.05
_MORE = "More tasks matched than were counted; the others were left alone."


class Orders(Loop):
    """One batch a step. An order is locked while a process is at it, and what it did is committed with its tally."""

    name = "orders"

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    async def step(self) -> float:
        """The next batch of the oldest order."""
        async with self._pool.transaction() as transaction:
            order = await transaction.run(take_order())
            if order is None:
                return _EVERY_SECONDS
            changed, skipped, over = await _carry_out(transaction, order)
        emit(
            "order.batch_done",
            id=order.id,
            verb=order.verb,
            count=len(changed),
            skipped=skipped,
            tasks=[str(task_id) for task_id in changed],
            over=over,
        )
        return _BREATH_SECONDS


async def _carry_out(transaction: Transaction, order: Taken) -> tuple[list[UUID], int, bool]:
    """Gives the tasks that were changed, how many were skipped, and whether the order is over."""
    page = await transaction.run(list_tasks(order.sought, _BATCH, order.before))
    # In the order of ids, in which every statement of the store locks rows.
    batch = sorted(page.tasks[: order.left], key=lambda task: task.id)
    changed = [task.id for task in batch if await _do(transaction, order.verb, task)]
    if order.verb == "run_again" and changed:
        await transaction.run(notify(sorted({task.queue for task in batch})))
    is_more = len(page.tasks) > order.left
    over = is_more or page.before is None or len(batch) == order.left
    skipped = len(batch) - len(changed)
    await transaction.run(
        record_order(
            order,
            page.before or order.before,
            len(changed),
            skipped,
            ended=over,
            note=_MORE if is_more else "",
        )
    )
    return changed, skipped, over


async def _do(transaction: Transaction, verb: str, task: Snapshot) -> bool:
    """Was there anything to do?"""
    match verb:
        case "cancel":
            return await transaction.run(cancel(task.id, patient=False)) is not None
        case "run_again":
            return await transaction.run(run_again(task.id, new_task_id())) is not None
        case "requeue":
            return await transaction.run(requeue(task.id)) is not None
        case _:
            gone: list[UUID] = await transaction.run(delete([task.id]))
            return bool(gone)
