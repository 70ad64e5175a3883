"""The rhythm of upkeep: when it looks again."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from asyncpoll.contract import Status
from tasks_app import catalogue
from tasks_app.insights.done import Done
from tasks_app.store import Rescued
from tasks_app.tasks import Backoff, task
from tasks_app.upkeep import Promotion, Rescue
from tests.support import aeventually
from tests.unit.fakes import FakePool


@pytest.fixture(autouse=True)
def far_poll(settings):
    """A poll never comes to the rescue of a wake-up that was missed."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WORKER_POLL_SECONDS": 3600.0}


def loop_over(kind: type, *answers: Any) -> Any:
    pool = FakePool(lambda call: answers[-1])
    pool.answers = list(answers[:-1])
    return kind(pool), pool


def rescued_task(task_id: UUID, status: Status) -> Rescued:
    return Rescued(task_id, status, 3, "sample.add", "default", 1, 1.5, 0.25)


async def test_promotion_sleeps_until_the_next_task_is_due_and_at_most_a_poll():
    """So that a delayed task starts when it is due."""
    for answer, pause in [((0, 1.5), 1.5), ((3, 9e9), 3600.0), ((0, None), 3600.0), ((0, -2), 0)]:
        promotion, _ = loop_over(Promotion, answer)
        assert await promotion.step() == pause


async def test_full_batches_follow_each_other_at_once():
    """A backlog is not worked off at one batch per second."""
    promotion, _ = loop_over(Promotion, (500, 60.0))
    assert await promotion.step() == 0
    rescued = [rescued_task(UUID(int=number), Status.PENDING) for number in range(500)]
    rescue, _ = loop_over(Rescue, rescued)
    assert await rescue.step() == 0


async def test_promotion_is_woken_for_a_task_that_is_due_sooner_than_it_would_look():
    """And left asleep for one that is due later."""
    promotion, pool = loop_over(Promotion, (0, 100.0))
    promotion.start()
    await aeventually(lambda: pool.calls and promotion._next_at)
    promotion.due_in(200.0)
    assert not promotion._woken.is_set()
    promotion.due_in(0.5)
    await aeventually(lambda: len(pool.calls) == 2)
    await promotion.stop()


async def test_every_rescue_is_told(emitted):
    """With what became of the task; one that is over is told as if its worker had said so."""
    again, over = UUID(int=6), UUID(int=7)
    rescue, _ = loop_over(
        Rescue, [rescued_task(again, Status.PENDING), rescued_task(over, Status.FAILED)]
    )
    assert await rescue.step() > 0
    assert emitted.of("task.rescued") == [
        {"id": again, "status": Status.PENDING, "version": 3},
        {"id": over, "status": Status.FAILED, "version": 3},
    ]
    done = Done("sample.add", over, "default", 1, "FAILED", 1_500.0, 250.0)
    assert emitted.of("tasks.done") == [{"ended": [done]}]


async def test_a_rescue_knows_the_backoff_of_each_task_that_declares_one(monkeypatch):
    """It is the delay after any failure, and a worker that died is one."""
    monkeypatch.setattr(catalogue, "_tasks", {})
    task(name="own", backoff=Backoff(2, 30))(rescued_task)
    task(name="usual")(loop_over)
    rescue, pool = loop_over(Rescue, [])
    await rescue.step()
    assert json.loads(pool.calls[0].params["backoffs"]) == [{"name": "own", "base": 2, "cap": 30}]


async def test_promotion_looks_again_when_a_task_is_stored_while_it_looks():
    """The statement on its way may be too old to see it."""
    pool = FakePool(lambda call: (0, None))
    promotion = Promotion(pool)
    pool.open.clear()
    promotion.start()
    await aeventually(lambda: len(pool.calls) == 1)
    promotion.due_in(1.0)
    pool.open.set()
    await aeventually(lambda: len(pool.calls) == 2)
    await promotion.stop()
