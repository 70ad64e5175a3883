"""Carries out actions over all that a filter matches: in batches, to no more tasks than were counted."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Touched:
    """A task as it was found, and whether there was anything to do. `new_id` is what running it again made."""

    task: Snapshot
    was_done: bool
    new_id: UUID | None = None


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
            touched, over = await _carry_out(transaction, order)
        for each in touched:
            _tell(order, each)
        done = sum(each.was_done for each in touched)
        emit(
            "order.batch_done",
            id=order.id,
            verb=order.verb,
            count=done,
            skipped=len(touched) - done,
            over=over,
        )
        return _BREATH_SECONDS


def _tell(order: Taken, touched: _Touched) -> None:
    """Of each task by itself: who looks for one has its id."""
    emit(
        "order.task_done" if touched.was_done else "order.task_skipped",
        order=order.id,
        by=order.placed_by,
        verb=order.verb,
        id=touched.task.id,
        status=touched.task.status,
        new_id=touched.new_id,
    )


async def _carry_out(transaction: Transaction, order: Taken) -> tuple[list[_Touched], bool]:
    """Gives the tasks of the batch with what became of them, and whether the order is over."""
    page = await transaction.run(list_tasks(order.sought, _BATCH, order.before))
    # In the order of ids, in which every statement of the store locks rows.
    batch = sorted(page.tasks[: order.left], key=lambda task: task.id)
    touched = [await _do(transaction, order.verb, task) for task in batch]
    done = sum(each.was_done for each in touched)
    if order.verb == "run_again" and done:
        await transaction.run(notify(sorted({task.queue for task in batch})))
    is_more = len(page.tasks) > order.left
    over = is_more or page.before is None or len(batch) == order.left
    await transaction.run(
        record_order(
            order,
            page.before or order.before,
            done,
            len(batch) - done,
            ended=over,
            note=_MORE if is_more else "",
        )
    )
    return touched, over


async def _do(transaction: Transaction, verb: str, task: Snapshot) -> _Touched:
    match verb:
        case "cancel":
            done = await transaction.run(cancel(task.id, patient=False)) is not None
        case "run_again":
            new_id = new_task_id()
            done = await transaction.run(run_again(task.id, new_id)) is not None
            return _Touched(task, done, new_id if done else None)
        case "requeue":
            done = await transaction.run(requeue(task.id)) is not None
        case _:
            gone: list[UUID] = await transaction.run(delete([task.id]))
            done = bool(gone)
    return _Touched(task, done)
