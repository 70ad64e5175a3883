"""Steps of an attempt: what is asked of the database, and what becomes of those that can't be recorded."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from typing import Any

import pytest

from tasks_app.errors import LeaseLost, StoreUnavailable
from tasks_app.store import Milestone, StepResult
from tasks_app.worker import recording
from tasks_app.worker.attempt import Attempt
from tasks_app.worker.outcome import Fate
from tests.support import aeventually
from tests.unit.claims import claimed
from tests.unit.fakes import FakePool

AWAY = StoreUnavailable("away")


class Desk:
    """An attempt, what it publishes, and the pool that its steps read from."""

    def __init__(self) -> None:
        self.pool = FakePool(lambda call: '"kept"')
        self.published: list[tuple[Milestone, Any]] = []

    def attempt(self, lease_seconds: float = 100.0, **facts: Any) -> Attempt:
        return Attempt(
            claimed(**facts),
            asyncio.get_running_loop(),
            lambda attempt, milestone, settled=None: self.published.append((milestone, settled)),
            time.monotonic() + lease_seconds,
        )


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = Desk()

    async def loop_pool() -> FakePool:
        return desk.pool

    monkeypatch.setattr(recording, "loop_pool", loop_pool)
    return desk


async def outcome(future: Future[Any]) -> Any:
    return await asyncio.wrap_future(future)


async def test_a_first_attempt_asks_the_database_nothing(desk):
    """Nobody came before it."""
    assert await outcome(desk.attempt().steps.find("a")) is None
    assert not desk.pool.calls


async def test_a_later_attempt_reads_what_was_recorded(desk):
    """Of that step only."""
    attempt = desk.attempt(attempt=2)
    assert await outcome(attempt.steps.find("a")) == '"kept"'
    assert desk.pool.calls[0].params == {"id": attempt.id, "name": "a"}


async def test_an_attempt_reads_what_it_recorded_itself(desk):
    """It keeps no result in memory."""
    attempt = desk.attempt()
    attempt.steps.record("a", '"kept"')
    assert await outcome(attempt.steps.find("a")) == '"kept"'


async def test_a_record_is_published_after_the_report_before_it_and_is_done_when_committed(desk):
    """Not when it is handed over."""
    attempt = desk.attempt()
    attempt.report(0.1)
    await aeventually(lambda: desk.published)
    attempt.report(0.5, "before")
    recorded = attempt.steps.record("a", "1")
    await aeventually(lambda: len(desk.published) == 3)
    (before, _), (step, settled) = desk.published[1:]
    assert (before.kind, before.progress) == ("progress", 0.5)
    assert (step.kind, step.step) == ("step", StepResult("a", "1"))
    assert not recorded.done()
    settled("")
    assert await outcome(recorded) is None


async def test_a_record_that_was_not_committed_says_why(desk):
    """With step, task and attempt."""
    attempt = desk.attempt(attempt=2)
    recorded = attempt.steps.record("a", "1")
    await aeventually(lambda: desk.published)
    desk.published[0][1]("it was fenced off")
    with pytest.raises(
        LeaseLost, match=r"Step 'a' of sample.aadd .* attempt 2 .*: it was fenced off"
    ):
        await outcome(recorded)


async def test_nobody_is_left_to_be_told_and_nothing_breaks(desk):
    """The coroutine was cancelled while it waited."""
    recorded = desk.attempt().steps.record("a", "1")
    await aeventually(lambda: desk.published)
    recorded.cancel()
    desk.published[0][1]("")


@pytest.mark.parametrize("how", [{"is_over": True}, *({"fate": fate} for fate in Fate)])
async def test_an_attempt_that_does_not_count_any_more_begins_and_records_nothing(desk, how):
    """A function that was left behind, say."""
    attempt = desk.attempt(attempt=2)
    steps = attempt.steps
    for name, value in how.items():
        setattr(attempt, name, value)
    with pytest.raises(LeaseLost, match="the attempt is over"):
        steps.find("a")
    with pytest.raises(LeaseLost, match="the attempt is over"):
        steps.record("a", "1")
    assert not desk.published


async def test_an_attempt_that_ends_while_its_step_is_handed_over_records_nothing(desk):
    """Its outcome may be on its way already; nothing may be joined to that."""
    attempt = desk.attempt()
    recorded = attempt.steps.record("a", "1")
    attempt.is_over = True
    with pytest.raises(LeaseLost, match="the attempt is over"):
        await outcome(recorded)
    assert not desk.published


async def test_reading_waits_for_a_database_that_is_away(desk):
    """An outage shorter than the lease costs the task nothing."""
    desk.pool.answers = [AWAY, AWAY]
    assert await outcome(desk.attempt(attempt=2).steps.find("a")) == '"kept"'
    assert len(desk.pool.calls) == 3


async def test_reading_gives_up_with_the_lease(desk):
    """By then somebody else may have the task."""
    desk.pool.default = lambda call: AWAY
    with pytest.raises(LeaseLost, match="the database is away: away"):
        await outcome(desk.attempt(lease_seconds=0.2, attempt=2).steps.find("a"))


async def test_a_coroutine_that_is_cancelled_does_not_cut_a_query_in_half(desk):
    """The pool would lose the connection."""
    desk.pool.open.clear()
    steps = desk.attempt(attempt=2).steps
    found = asyncio.ensure_future(outcome(steps.find("a")))
    await aeventually(lambda: desk.pool.calls)
    found.cancel()
    await asyncio.wait([found])
    (reader,) = steps._readers
    assert not reader.cancelling()
    desk.pool.open.set()
    await asyncio.wait([reader])
    assert reader.exception() is None


async def test_whoever_waits_for_a_read_when_the_worker_ends_is_told(desk):
    """A thread would wait for ever."""
    desk.pool.open.clear()
    steps = desk.attempt(attempt=2).steps
    found = steps.find("a")
    await aeventually(lambda: desk.pool.calls)
    (reader,) = steps._readers
    reader.cancel()
    await asyncio.wait([reader])
    with pytest.raises(LeaseLost, match="the worker stopped"):
        found.result(0)
