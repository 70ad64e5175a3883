"""Group commit: what is written together, and what happens when the database will not have it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest

from asyncpoll.contract import Status
from tasks_app.errors import StoreUnavailable
from tasks_app.insights.done import Done
from tasks_app.store import Change, Committed, Milestone, StepResult
from tasks_app.worker import committer
from tasks_app.worker.attempt import Attempt
from tasks_app.worker.committer import Committer
from tasks_app.worker.held import Held
from tests.support import aeventually
from tests.unit.claims import claimed
from tests.unit.fakes import FakePool, all_committed, said

WORKER = UUID(int=99)


class Desk:
    """A committer with what is around it."""

    def __init__(self) -> None:
        self.pool = FakePool(all_committed)
        self.held = Held(100)
        self.fenced: list[Attempt] = []
        self.delays: list[float] = []
        self.committer = Committer(
            self.pool,  # type: ignore[arg-type]
            WORKER,
            self.held,
            self.fenced.append,
            self.delays.append,
        )

    def attempt(self, number: int = 1, lease_seconds: float = 100.0, **facts: Any) -> Attempt:
        loop = asyncio.get_running_loop()
        attempt = Attempt(
            claimed(number, **facts), loop, lambda *_: None, time.monotonic() + lease_seconds
        )
        self.held.add(attempt)
        return attempt

    def written(self) -> list[list[UUID]]:
        return [said(call)["ids"] for call in self.pool.calls]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    yield made
    await made.committer.stop()


@asynccontextmanager
async def first_write_held_up(desk: Desk) -> AsyncIterator[None]:
    """Offers inside gather behind a write that is on its way."""
    desk.pool.open.clear()
    desk.committer.start()
    desk.committer.offer(first := desk.attempt(1000), success(first))
    await aeventually(lambda: desk.pool.calls)
    yield
    desk.pool.open.set()
    assert await desk.committer.drain(20)


def success(attempt: Attempt, result: str = "1") -> Change:
    milestone = Milestone("succeeded", 1.0)
    return Change(attempt.id, attempt.attempt, Status.SUCCESS, (milestone,), result=result)


def report(attempt: Attempt, progress: float) -> Change:
    milestone = Milestone("progress", progress, f"at {progress}")
    return Change(attempt.id, attempt.attempt, Status.RUNNING, (milestone,))


def step(attempt: Attempt, name: str, result: str = "1") -> Change:
    milestone = Milestone("step", step=StepResult(name, result))
    return Change(attempt.id, attempt.attempt, Status.RUNNING, (milestone,))


async def test_what_gathers_behind_a_write_is_written_in_one_statement_in_order_of_ids(desk):
    """One statement, however many tasks."""
    async with first_write_held_up(desk):
        for number in (5, 3, 9, 1):
            attempt = desk.attempt(number)
            desk.committer.offer(attempt, success(attempt))
    assert desk.written()[1:] == [[UUID(int=number) for number in (1, 3, 5, 9)]]
    assert not desk.held.all()


async def test_after_a_write_of_several_a_round_of_the_slots_gathers_before_the_next(
    desk, monkeypatch
):
    """Under load small statements cost more than they win; what comes too late for a round waits for milliseconds."""
    monkeypatch.setattr(committer, "_GATHER_SECONDS", 1000.0)
    desk.held.concurrency = 3
    async with first_write_held_up(desk):
        for number in (1, 2):
            desk.committer.offer(attempt := desk.attempt(number), success(attempt))
        desk.pool.open.set()
        await aeventually(lambda: len(desk.held.all()) == 0)
        for number in (3, 4):
            desk.committer.offer(attempt := desk.attempt(number), success(attempt))
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(desk.pool.calls) == 2
        desk.committer.offer(attempt := desk.attempt(5), success(attempt))
    assert desk.written()[1:] == [[UUID(int=1), UUID(int=2)], [UUID(int=n) for n in (3, 4, 5)]]


async def test_what_has_gathered_is_written_though_no_round_comes_together(desk):
    """The last ones of a burst."""
    async with first_write_held_up(desk):
        for number in (1, 2):
            desk.committer.offer(attempt := desk.attempt(number), success(attempt))
        desk.pool.open.set()
        await aeventually(lambda: len(desk.held.all()) == 0)
        desk.committer.offer(attempt := desk.attempt(3), success(attempt))
    assert desk.written()[-1] == [UUID(int=3)]


async def test_a_change_that_comes_alone_is_written_at_once(desk, monkeypatch):
    """An idle worker's next outcome waits for nothing."""
    monkeypatch.setattr(committer, "_GATHER_SECONDS", 1000.0)
    desk.committer.start()
    for number in (1, 2):
        desk.committer.offer(attempt := desk.attempt(number), success(attempt))
        assert await desk.committer.drain(20)
    assert desk.written() == [[UUID(int=1)], [UUID(int=2)]]


async def test_a_task_is_in_a_batch_once_with_all_its_milestones(desk):
    """One UPDATE … FROM would apply only one of several changes of a row."""
    async with first_write_held_up(desk):
        attempt = desk.attempt(1)
        for change in (report(attempt, 0.1), report(attempt, 0.2), success(attempt)):
            desk.committer.offer(attempt, change)
    params = said(desk.pool.calls[1])
    assert params["ids"] == [attempt.id]
    assert params["statuses"] == ["SUCCESS"]
    assert params["event_kinds"] == ["progress", "progress", "succeeded"]
    assert params["bumps"] == [3]
    assert params["messages"] == ["at 0.2"]


async def test_a_newer_attempt_displaces_what_an_older_one_had_to_say(desk, emitted):
    """The older was fenced off, or there were no newer one."""
    async with first_write_held_up(desk):
        old, new = desk.attempt(1), desk.attempt(1, attempt=2)
        desk.committer.offer(old, success(old))
        desk.committer.offer(new, success(new))
        desk.committer.offer(old, success(old))
    assert said(desk.pool.calls[1])["attempts"] == [2]
    assert desk.fenced == [old, old]
    assert [facts["attempt"] for facts in emitted.of("task.fenced")] == [1, 1]


async def test_a_batch_has_a_bounded_number_of_changes(desk):
    """The rest is written next."""
    async with first_write_held_up(desk):
        for number in range(1, 702):
            attempt = desk.attempt(number)
            desk.committer.offer(attempt, success(attempt))
    assert [len(ids) for ids in desk.written()] == [1, 500, 201]


async def test_a_batch_has_a_bounded_size(desk):
    """Large results are not all in memory as one statement."""
    async with first_write_held_up(desk):
        for number in range(1, 7):
            attempt = desk.attempt(number)
            desk.committer.offer(attempt, success(attempt, result="1" * 1_000_000))
    assert [len(ids) for ids in desk.written()] == [1, 4, 2]


async def test_an_attempt_missing_from_the_answer_is_fenced_off(desk, emitted):
    """The executor hears of it, and its neighbours are not touched."""
    good, late = desk.attempt(1), desk.attempt(2)
    desk.pool.answers = [lambda call: all_committed(call)[:1]]
    desk.committer.offer(good, success(good))
    desk.committer.offer(late, success(late))
    desk.committer.start()
    assert await desk.committer.drain(20)
    assert desk.fenced == [late]
    assert [facts["id"] for facts in emitted.of("task.fenced")] == [late.id]
    assert not desk.held.all()


async def test_a_report_leaves_the_attempt_held(desk):
    """Its lease has to be extended until it ends."""
    attempt = desk.attempt()
    desk.committer.offer(attempt, report(attempt, 0.5))
    desk.committer.start()
    assert await desk.committer.drain(20)
    assert desk.held.all() == (attempt,)


async def test_while_the_database_is_away_everything_is_kept_and_then_written_once(desk, emitted):
    """What was offered meanwhile goes along, joined with what was kept."""
    away = StoreUnavailable("away")
    desk.pool.answers = [away, away]
    attempt, other = desk.attempt(1), desk.attempt(2)
    desk.committer.offer(attempt, report(attempt, 0.5))
    desk.committer.start()
    await aeventually(lambda: emitted.of("commit.retried"))
    desk.committer.offer(attempt, success(attempt))
    desk.committer.offer(other, success(other))
    assert await desk.committer.drain(20)
    last = said(desk.pool.calls[-1])
    assert last["ids"] == [attempt.id, other.id]
    assert last["event_kinds"] == ["progress", "succeeded", "succeeded"]
    assert not desk.fenced


async def test_what_was_committed_without_an_answer_is_not_committed_twice(desk, emitted):
    """Only the answer was lost: the report and the outcome count, and whoever waits hears so."""
    desk.pool.answers = [StoreUnavailable("away")]
    ended, reporting, other = (desk.attempt(number) for number in (1, 2, 3))
    desk.pool.written = [
        Committed(ended.id, Status.SUCCESS, 3),
        Committed(reporting.id, Status.RUNNING, 3),
    ]
    told: list[str] = []
    desk.committer.offer(ended, success(ended), told.append)
    desk.committer.offer(reporting, report(reporting, 0.5))
    desk.committer.offer(other, success(other))
    desk.committer.start()
    await aeventually(lambda: emitted.of("commit.retried"))
    desk.committer.offer(reporting, report(reporting, 0.7))
    assert await desk.committer.drain(20)
    assert desk.written()[1:] == [[reporting.id, other.id]]
    assert said(desk.pool.calls[-1])["progress"][0] == 0.7
    assert told == [""]
    assert not emitted.of("task.fenced")
    assert desk.held.all() == (reporting,)


async def test_a_deadlock_is_tried_again(desk):
    """The pool tells it like an outage, and it is over as soon."""
    deadlock = StoreUnavailable("deadlock")
    deadlock.__cause__ = psycopg.errors.DeadlockDetected("deadlock detected")
    desk.pool.answers = [deadlock]
    attempt = desk.attempt()
    desk.committer.offer(attempt, success(attempt))
    desk.committer.start()
    assert await desk.committer.drain(20)
    assert len(desk.pool.calls) == 2
    assert not desk.fenced


async def test_an_outcome_whose_lease_ran_out_meanwhile_is_let_go(desk, emitted):
    """Somebody else has the task by then; keeping it would only fill the memory."""
    desk.pool.default = lambda call: StoreUnavailable("away")
    attempt, lasting = desk.attempt(1, lease_seconds=-1), desk.attempt(2)
    desk.committer.offer(attempt, success(attempt))
    desk.committer.offer(lasting, success(lasting))
    desk.committer.start()
    await aeventually(lambda: emitted.of("commit.abandoned"))
    assert desk.held.all() == (lasting,)
    assert [facts["id"] for facts in emitted.of("commit.abandoned")] == [attempt.id]


@pytest.mark.parametrize("kind", ["data error", "limit", "python error"])
async def test_a_poisonous_change_fails_its_own_task_and_no_other(desk, kind):
    """However it is refused: by the database, by one of its limits, or while it is sent."""

    def refuse(call: Any) -> Any:
        if "poison" not in said(call)["results"]:
            return all_committed(call)
        if kind == "data error":
            return psycopg.DataError("invalid input syntax for type json")
        if kind == "python error":
            return UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        refused = StoreUnavailable("stack depth limit exceeded")
        refused.__cause__ = psycopg.errors.StatementTooComplex("stack depth limit exceeded")
        return refused

    desk.pool.default = refuse
    attempts = [desk.attempt(number) for number in range(1, 8)]
    for attempt in attempts:
        desk.committer.offer(attempt, success(attempt, "poison" if attempt.id.int == 4 else "1"))
    desk.committer.start()
    assert await desk.committer.drain(20)
    ends, reasons = {}, {}
    for call in desk.pool.calls:
        if "poison" not in said(call)["results"]:
            ends.update(zip(said(call)["ids"], said(call)["statuses"], strict=True))
            reasons.update(zip(said(call)["ids"], said(call)["error_messages"], strict=True))
    assert ends == {
        attempt.id: "FAILED" if attempt.id.int == 4 else "SUCCESS" for attempt in attempts
    }
    assert "The database refused what attempt 1 had to say" in reasons[UUID(int=4)]
    assert not desk.held.all()


async def test_a_poisonous_report_ends_its_attempt(desk):
    """The task is FAILED; what still runs of it no longer counts."""
    desk.pool.answers = [psycopg.DataError("bad")]
    attempt = desk.attempt()
    desk.committer.offer(attempt, report(attempt, 0.5))
    desk.committer.start()
    assert await desk.committer.drain(20)
    assert said(desk.pool.calls[-1])["statuses"] == ["FAILED"]
    assert desk.fenced == [attempt]


async def test_a_change_that_is_refused_even_as_a_failure_is_let_go(desk, emitted):
    """It must not be tried for ever."""
    desk.pool.default = lambda call: psycopg.DataError("bad")
    attempt = desk.attempt()
    desk.committer.offer(attempt, success(attempt))
    desk.committer.start()
    assert await desk.committer.drain(20)
    assert emitted.of("commit.abandoned")
    assert not desk.held.all()


async def test_the_database_going_away_among_halves_loses_none_of_them(desk):
    """Halves that were written are not written again; the others are kept."""
    desk.pool.answers = [
        psycopg.DataError("bad"),
        all_committed,
        StoreUnavailable("away"),
    ]
    attempts = [desk.attempt(number) for number in (1, 2, 3, 4)]
    for attempt in attempts:
        desk.committer.offer(attempt, success(attempt))
    desk.committer.start()
    assert await desk.committer.drain(20)
    assert [[task_id.int for task_id in ids] for ids in desk.written()] == [
        [1, 2, 3, 4],
        [1, 2],
        [3, 4],
        [3, 4],
    ]


async def test_the_soonest_retry_of_a_batch_is_passed_on(desk):
    """So that it starts when due and not at the next poll."""
    async with first_write_held_up(desk):
        for number, delay in ((1, 2.0), (2, 0.5), (3, 9.0)):
            attempt = desk.attempt(number)
            milestone = (Milestone("retried"),)
            desk.committer.offer(
                attempt, Change(attempt.id, 1, Status.PENDING, milestone, delay_seconds=delay)
            )
    assert desk.delays == [0.5]


async def test_whoever_offers_steps_hears_of_the_commit_that_took_them_along(desk):
    """Not before it, and each of several that were joined."""
    told: list[str] = []
    async with first_write_held_up(desk):
        attempt = desk.attempt(1)
        desk.committer.offer(attempt, step(attempt, "a"), told.append)
        desk.committer.offer(attempt, report(attempt, 0.5))
        desk.committer.offer(attempt, step(attempt, "b", "2"), told.append)
        assert told == []
    params = said(desk.pool.calls[1])
    assert params["ids"] == params["step_ids"][:1] == [attempt.id]
    assert params["step_ids"] == [attempt.id, attempt.id]
    assert params["step_names"] == ["a", "b"]
    assert params["step_results"] == ["1", "2"]
    assert params["event_kinds"] == ["step", "progress", "step"]
    assert told == ["", ""]


async def test_a_step_that_the_database_was_away_for_is_settled_once_it_is_written(desk, emitted):
    """Whoever waits goes on waiting meanwhile."""
    desk.pool.answers = [StoreUnavailable("away")]
    told: list[str] = []
    attempt = desk.attempt()
    desk.committer.offer(attempt, step(attempt, "a"), told.append)
    desk.committer.start()
    await aeventually(lambda: emitted.of("commit.retried"))
    assert told == []
    assert await desk.committer.drain(20)
    assert told == [""]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda call: [], "the attempt does not hold the task any more"),
        (psycopg.DataError("bad"), "the database refused it: bad"),
        (StoreUnavailable("away"), "it could not be committed: away"),
    ],
    ids=["fenced", "refused", "lease ran out"],
)
async def test_whoever_offers_a_step_hears_why_it_was_not_committed(desk, answer, reason):
    """Once, whatever the reason."""
    desk.pool.answers = [answer]
    told: list[str] = []
    attempt = desk.attempt(lease_seconds=-1)
    desk.committer.offer(attempt, step(attempt, "a"), told.append)
    desk.committer.start()
    await aeventually(lambda: told)
    assert await desk.committer.drain(20)
    assert told == [reason]


async def test_whoever_waits_when_the_committer_stops_is_told(desk):
    """Whether their step was being written or not yet."""
    told: list[str] = []
    desk.pool.open.clear()
    desk.committer.start()
    for number in (1, 2):
        attempt = desk.attempt(number)
        desk.committer.offer(attempt, step(attempt, "a"), told.append)
        await aeventually(lambda: desk.pool.calls)
    await desk.committer.stop()
    assert told == ["the worker stopped"] * 2


async def test_large_steps_bound_a_batch_like_large_results(desk):
    """They are sent in the same statement."""
    async with first_write_held_up(desk):
        for number in range(1, 7):
            attempt = desk.attempt(number)
            desk.committer.offer(attempt, step(attempt, "a", "1" * 1_000_000))
    assert [len(ids) for ids in desk.written()] == [1, 4, 2]


def unlocked(desk: Desk) -> Any:
    """Answers with what is not locked."""
    return lambda call: [task for task in all_committed(call) if task.id not in desk.pool.locked]


async def test_a_locked_row_is_tried_again_and_holds_up_nobody_else(desk):
    """It is neither fenced off nor lost; its neighbours are committed with the first statement."""
    desk.pool.locked = {UUID(int=2)}
    desk.pool.answers = [unlocked(desk), unlocked(desk)]
    attempts = [desk.attempt(number) for number in (1, 2, 3)]
    for attempt in attempts:
        desk.committer.offer(attempt, success(attempt))
    desk.committer.start()
    assert await desk.committer.drain(20)
    assert [[task_id.int for task_id in ids] for ids in desk.written()] == [[1, 2, 3], [2], [2]]
    assert not desk.fenced
    assert not desk.held.all()


async def test_what_an_attempt_says_after_a_change_whose_row_is_locked_waits_behind_it(desk):
    """Said while the statement was out, or later: the order is kept, and each milestone is committed once."""
    told: list[str] = []
    desk.pool.locked = {UUID(int=1)}
    desk.pool.default = unlocked(desk)
    desk.pool.open.clear()
    desk.committer.start()
    attempt = desk.attempt(1)
    desk.committer.offer(attempt, report(attempt, 0.1))
    await aeventually(lambda: desk.pool.calls)
    desk.committer.offer(attempt, step(attempt, "a"), told.append)
    desk.pool.open.set()
    await aeventually(lambda: len(desk.pool.calls) > 2)
    desk.committer.offer(attempt, success(attempt))
    calls = len(desk.pool.calls)
    # A statement may have been out already when it was offered; the next one has it.
    await aeventually(lambda: len(desk.pool.calls) > calls + 1)
    desk.pool.default = all_committed
    assert await desk.committer.drain(20)
    kinds = [said(call)["event_kinds"] for call in desk.pool.calls]
    assert kinds[0] == ["progress"]
    assert kinds[1] == ["progress", "step"]
    assert kinds[-1] == ["progress", "step", "succeeded"]
    assert told == [""]


async def test_a_locked_row_is_tried_ever_more_rarely_until_the_lease_ends(desk, emitted):
    """Whoever waits is told then, and somebody who looks into the log learns why it takes so long."""
    desk.pool.locked = {UUID(int=1)}
    desk.pool.default = unlocked(desk)
    told: list[str] = []
    attempt = desk.attempt(1, lease_seconds=2.0)
    desk.committer.offer(attempt, step(attempt, "a"), told.append)
    desk.committer.start()
    assert await desk.committer.drain(20)
    assert told == ["it could not be committed: its row was locked all the while"]
    assert [facts["id"] for facts in emitted.of("commit.locked")] == [attempt.id]
    assert 9 <= len(desk.pool.calls) <= 12
    assert not desk.fenced


async def test_a_newer_attempt_displaces_an_older_one_whose_row_is_locked(desk):
    """And is written at once."""
    desk.pool.locked = {UUID(int=1)}
    desk.pool.default = lambda call: [] if 1 in said(call)["attempts"] else all_committed(call)
    old, new = desk.attempt(1), desk.attempt(1, attempt=2)
    desk.committer.offer(old, success(old))
    desk.committer.start()
    await aeventually(lambda: len(desk.pool.calls) > 2)
    desk.committer.offer(new, success(new))
    assert await desk.committer.drain(20)
    assert said(desk.pool.calls[-1])["attempts"] == [2]
    assert desk.fenced == [old]


async def test_each_task_that_is_over_is_told_of_once_and_when_that_is_committed(
    desk: Desk, emitted: Any
) -> None:
    """Not an attempt that others follow, and not one that was fenced off."""
    async with first_write_held_up(desk):
        over, again, lost = (desk.attempt(number, queue="red") for number in (1, 2, 3))
        over.duration_ms = 12.5
        desk.committer.offer(over, success(over))
        retry = success(again)._replace(status=Status.PENDING, result=None, delay_seconds=1.0)
        desk.committer.offer(again, retry)
        desk.committer.offer(lost, success(lost))
        desk.pool.answers = [all_committed, lambda call: all_committed(call)[:2]]
        assert emitted.of("tasks.done") == []
    (first,), (done,) = (facts["ended"] for facts in emitted.of("tasks.done"))
    assert first.task_id == UUID(int=1000)
    assert done == Done(over.name, over.id, "red", 1, "SUCCESS", 12.5, done.queue_wait_ms)
