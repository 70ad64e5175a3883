"""When the claimer claims, and how many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from asyncpoll.contract import Status
from tasks_app.errors import StoreUnavailable
from tasks_app.store import Change, Lane
from tasks_app.wakeup.bridge import WORK_CHANNEL
from tasks_app.worker.attempt import Attempt
from tasks_app.worker.claimer import Claimer
from tasks_app.worker.executor import Executor
from tasks_app.worker.hearing import WorkEar
from tasks_app.worker.held import Held
from tests import sample_tasks
from tests.support import aeventually
from tests.unit.claims import claimed
from tests.unit.fakes import FakePool, said


class Desk:
    """A claimer over a queue of `ready` tasks, with an executor whose outcomes are kept in `offered`."""

    def __init__(
        self,
        concurrency: int,
        queues: tuple[str, ...] | None = None,
        batch: int | None = None,
    ) -> None:
        self.ready: list[Any] = []
        self.pool = FakePool(self.take)
        self.held = Held(concurrency)
        self.offered: list[tuple[Attempt, Change]] = []
        self.executor = Executor(
            self.held, lambda attempt, change, settled=None: self.offer(attempt, change)
        )
        self.claimer = Claimer(
            self.pool,  # type: ignore[arg-type]
            UUID(int=99),
            queues,
            self.held,
            self.executor,
            batch,
        )
        self.ear = WorkEar(self.claimer, self.executor)

    def take(self, call: Any) -> list[Any]:
        if call.statement == "lanes":
            return list({Lane(task.queue, task.owner): None for task in self.ready})
        limit = sum(said(call)["quota"])
        taken, self.ready = self.ready[:limit], self.ready[limit:]
        return taken

    def take_of_those_asked(self, call: Any) -> list[Any]:
        """The same, where owners differ."""
        if call.statement == "lanes":
            return self.take(call)
        asked = dict(zip(said(call)["owner"], said(call)["quota"], strict=True))
        taken = [task for task in self.ready if task.owner in asked][: sum(asked.values())]
        self.ready = [task for task in self.ready if task not in taken]
        return taken

    def offer(self, attempt: Attempt, change: Change) -> None:
        self.offered.append((attempt, change))
        self.held.drop(attempt)

    @property
    def asked(self) -> list[int]:
        return [sum(said(call)["quota"]) for call in self.pool.of("claim")]

    @property
    def looks(self) -> int:
        return len(self.pool.of("lanes"))


@pytest.fixture
async def desks(settings) -> AsyncIterator[Any]:
    """Makes desks. A poll never comes to the rescue of a wake-up that was missed."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "WORKER_POLL_SECONDS": 3600.0}
    made: list[Desk] = []

    def make(*args: Any) -> Desk:
        made.append(Desk(*args))
        return made[-1]

    with sample_tasks.fresh_gates():
        yield make
        for desk in made:
            desk.pool.open.set()
            await desk.claimer.stop()
            await desk.executor.release()


def waiting(numbers: range) -> list[Any]:
    """Tasks that run until the test ends."""
    return [claimed(number, name="sample.sleep", args="[60]") for number in numbers]


async def test_full_claims_follow_each_other_until_one_comes_back_short(desks):
    """Nothing wakes the claimer in between."""
    desk = desks(10)
    desk.ready = [claimed(number) for number in range(1, 36)]
    desk.claimer.start()
    await aeventually(lambda: len(desk.offered) == 35)
    assert not desk.ready
    assert max(desk.asked) <= 10


async def test_a_claim_takes_no_more_than_a_batch_though_more_could_begin(desks):
    """Two claims fill the slots."""
    desk = desks(5, None, 3)
    desk.ready = waiting(range(1, 9))
    desk.claimer.start()
    await aeventually(lambda: desk.held.running == 5)
    assert desk.asked == [3, 2]


async def test_the_next_claim_is_on_its_way_before_the_last_ones_tasks_begin(desks, monkeypatch):
    """So that the database finds tasks while others run."""
    desk = desks(4, None, 2)
    desk.ready = [claimed(number) for number in range(1, 5)]
    asked_by_then: list[int] = []
    run = Executor._run

    async def begin(*args: Any) -> None:
        asked_by_then.append(len(desk.asked))
        await run(*args)

    monkeypatch.setattr(Executor, "_run", begin)
    desk.claimer.start()
    await aeventually(lambda: len(desk.offered) == 4)
    assert asked_by_then == [2, 2, 3, 3]


async def test_it_asks_for_the_free_slots_only_and_waits_for_one_at_full_concurrency(desks):
    """A claimed task never waits inside a worker."""
    desk = desks(3)
    desk.ready = waiting(range(1, 9))
    desk.claimer.start()
    await aeventually(lambda: desk.held.running == 3)
    desk.claimer.work_offered()
    await aeventually(lambda: not desk.claimer._woken.is_set())
    assert desk.asked == [3]
    desk.executor.cancel(UUID(int=2))
    await aeventually(lambda: desk.asked == [3, 1])
    assert [attempt.id.int for attempt, _ in desk.offered] == [2]


async def test_outcomes_that_are_not_committed_stop_the_claims(desks):
    """Memory stays bounded while the database takes claims and no commits."""
    desk = desks(2)
    kept: list[Any] = []
    desk.offer = lambda attempt, change: kept.append(attempt)  # type: ignore[method-assign]
    desk.ready = [claimed(number) for number in range(1, 20)]
    desk.claimer.start()
    await aeventually(lambda: len(kept) == 4)
    desk.claimer.work_offered()
    await aeventually(lambda: not desk.claimer._woken.is_set())
    assert sum(desk.asked) == 4
    for attempt in kept[:4]:
        desk.held.drop(attempt)
    await aeventually(lambda: len(kept) == 8)


async def test_a_notification_of_its_queue_wakes_it_and_others_do_not(desks):
    """Other queues are other workers' business."""
    desk = desks(5, ("mail", "default"))
    desk.claimer.start()
    await aeventually(lambda: desk.looks == 1)
    desk.ear.heard(WORK_CHANNEL, "queue:unheard-of")
    assert not desk.claimer._woken.is_set()
    desk.ready = [claimed(1)]
    desk.ear.heard(WORK_CHANNEL, "queue:mail")
    await aeventually(lambda: desk.offered)


async def test_work_offered_while_a_look_is_on_its_way_is_looked_for_again(desks):
    """It may have looked before the work was there."""
    desk = desks(5)
    desk.pool.open.clear()
    desk.claimer.start()
    await aeventually(lambda: desk.looks)
    desk.ear.heard(WORK_CHANNEL, "queue:default")
    desk.pool.answers = [[]]
    desk.ready = [claimed(1)]
    desk.pool.open.set()
    await aeventually(lambda: desk.offered)


async def test_work_offered_while_a_claim_is_on_its_way_is_claimed_next(desks):
    """The claim may come back short, of a lane that has filled since."""
    desk = desks(5)
    desk.pool.open.clear()
    desk.pool.only = "claim"
    desk.ready = [claimed(1)]
    desk.claimer.start()
    await aeventually(lambda: desk.asked)
    desk.ear.heard(WORK_CHANNEL, "queue:default")
    desk.ready = [claimed(2)]
    desk.pool.answers = [[claimed(1)]]
    desk.pool.open.set()
    await aeventually(lambda: len(desk.offered) == 2)


async def test_work_of_somebody_who_was_served_lately_is_claimed_before_a_look(desks, monkeypatch):
    """The notification names the queue, and most tasks come from the same few."""
    monkeypatch.setattr("tasks_app.worker.claimer._LOOK_SECONDS", 0.0)
    desk = desks(5)
    desk.ready = [claimed(1)]
    desk.claimer.start()
    await aeventually(lambda: desk.offered and not desk.claimer._turns)
    calls = len(desk.pool.calls)
    desk.ready = [claimed(2)]
    desk.ear.heard(WORK_CHANNEL, "queue:default")
    await aeventually(lambda: len(desk.offered) == 2)
    await aeventually(lambda: len(desk.pool.calls) == calls + 2)
    assert [call.statement for call in desk.pool.calls[calls:]] == ["claim", "lanes"]


async def test_a_look_that_finds_nothing_ends_the_load(desks, monkeypatch):
    """A claim that came back full seemed to leave something behind; the next offer's is a guess again all the same."""
    monkeypatch.setattr("tasks_app.worker.claimer._LOOK_SECONDS", 0.0)
    desk = desks(1)
    desk.claimer.start()
    firsts = []
    for number in range(1, 6):
        calls = len(desk.pool.calls)
        desk.ready = [claimed(number)]
        desk.ear.heard(WORK_CHANNEL, "queue:default")
        await aeventually(lambda: len(desk.offered) == number)  # noqa: B023 - called here
        await aeventually(lambda: not desk.claimer._hungry)
        firsts.append(desk.pool.calls[calls].statement)
    assert firsts == ["lanes"] + ["claim"] * 4


async def test_what_is_alone_begins_before_the_next_statement_leaves(desks, monkeypatch):
    """Nothing waits that a head start would be for, and somebody waits for the task."""
    desk = desks(5)
    desk.ready = [claimed(1)]
    desk.claimer.start()
    await aeventually(lambda: desk.offered and not desk.claimer._hungry)
    known_by_then: list[int] = []
    run = Executor._run

    async def begin(*args: Any) -> None:
        known_by_then.append(len(desk.pool.calls))
        await run(*args)

    monkeypatch.setattr(Executor, "_run", begin)
    calls = len(desk.pool.calls)
    desk.ready = [claimed(2)]
    desk.ear.heard(WORK_CHANNEL, "queue:default")
    await aeventually(lambda: len(desk.offered) == 2)
    assert known_by_then == [calls + 1]


async def test_under_load_offers_do_not_make_it_look_each_time(desks):
    """A claim that comes back full is followed by the next, however often something is enqueued meanwhile."""
    desk = desks(1)
    desk.ready = [claimed(number) for number in range(1, 200)]
    desk.executor.accept = lambda batch, _: desk.ear.heard(WORK_CHANNEL, "queue:default")  # type: ignore[method-assign]
    desk.claimer.start()
    await aeventually(lambda: not desk.ready)
    assert desk.looks < len(desk.asked) / 2


async def test_a_new_owner_is_found_while_another_has_no_end_of_tasks(desks):
    """Offers are heard under load, too: the next look is at most a moment away."""
    desk = desks(1)
    flood = [claimed(number, owner="flood") for number in range(1, 50)]
    desk.ready = list(flood)
    begun: list[str] = []

    def begin(batch: Any, _: float) -> None:
        begun.extend(task.owner for task in batch)
        desk.ready.extend(flood[: len(batch)])

    desk.executor.accept = begin  # type: ignore[method-assign]
    desk.pool.default = desk.take_of_those_asked
    desk.claimer.start()
    await aeventually(lambda: len(begun) > 3)
    desk.ready.append(claimed(99, owner="new"))
    desk.ear.heard(WORK_CHANNEL, "queue:default")
    await aeventually(lambda: "new" in begun)


async def test_a_new_owner_is_found_while_another_s_offers_never_end(desks):
    """Each of them is guessed, and a claim never full: one guess after the other is not made instead of a look."""
    desk = desks(5)
    desk.ready = [claimed(1, owner="known")]
    begun: list[str] = []

    def offer() -> None:
        desk.ready.append(claimed(1, owner="known"))
        desk.ear.heard(WORK_CHANNEL, "queue:default")

    def begin(batch: Any, _: float) -> None:
        begun.extend(task.owner for task in batch)
        # Heard when the claimer next leaves the loop to others.
        asyncio.get_running_loop().call_soon(offer)

    desk.executor.accept = begin  # type: ignore[method-assign]
    desk.pool.default = desk.take_of_those_asked
    desk.claimer.start()
    await aeventually(lambda: len(begun) > 3)
    desk.ready.append(claimed(99, owner="new"))
    await aeventually(lambda: "new" in begun)


async def test_more_owners_than_one_look_gives_do_not_wait_for_a_poll(desks, monkeypatch):
    """Whoever was beyond the end of the last look is found by the next, which follows when that one is used up."""
    monkeypatch.setattr("tasks_app.claiming.rounds.MOST_LANES", 4)
    desk = desks(50)
    desk.ready = [claimed(number, owner=f"o{number}") for number in range(1, 10)]

    def take(call: Any) -> list[Any]:
        if call.statement == "lanes":
            return [Lane(task.queue, task.owner) for task in desk.ready[:4]]
        taken = [task for task in desk.ready if task.owner in said(call)["owner"]]
        desk.ready = [task for task in desk.ready if task not in taken]
        return taken

    desk.pool.default = take
    desk.claimer.start()
    await aeventually(lambda: len(desk.offered) == 9)


async def test_whoever_has_nothing_left_is_forgotten_by_the_next_look(desks, monkeypatch):
    """Owners whose tasks others took or cancelled are not kept for as long as there is no slot for them."""
    monkeypatch.setattr("tasks_app.worker.claimer._LOOK_SECONDS", 0.0)
    desk = desks(1)
    desk.ready = [
        claimed(number, owner=f"o{number}", name="sample.sleep", args="[60]")
        for number in range(1, 5)
    ]
    desk.claimer.start()
    await aeventually(lambda: desk.held.running == 1)
    desk.ready = []
    desk.claimer.work_offered()
    desk.executor.cancel(UUID(int=1))
    await aeventually(lambda: desk.looks == 2 and not desk.claimer._turns)
    assert desk.asked == [1]


async def test_owners_whose_tasks_somebody_has_locked_are_not_looked_for_again_and_again(
    desks, monkeypatch
):
    """However many they are: a look of which nothing could be claimed is followed by a rest."""
    monkeypatch.setattr("tasks_app.claiming.rounds.MOST_LANES", 4)
    desk = desks(50)
    locked = [Lane("default", f"o{number}") for number in range(4)]
    desk.pool.default = lambda call: locked if call.statement == "lanes" else []
    desk.claimer.start()
    await aeventually(lambda: desk.asked and not desk.claimer._turns)
    for _ in range(20):
        await asyncio.sleep(0)
    assert desk.looks == 1


async def test_a_new_connection_of_the_listener_is_a_reason_to_look(desks):
    """What was said before it is lost."""
    desk = desks(5)
    desk.claimer.start()
    await aeventually(lambda: desk.looks == 1)
    desk.ready = [claimed(1)]
    await desk.ear.connected(None)  # type: ignore[arg-type]
    await aeventually(lambda: desk.offered)


@pytest.mark.parametrize(
    "payload",
    [
        "",
        ":",
        "queue",
        "queue:",
        "cancel:",
        "cancel:not-a-uuid",
        "\ud800",
        "x" * 8000,
        "drop:table",
    ],
)
async def test_a_malformed_payload_is_said_and_forgotten(desks, emitted, payload):
    """Anybody may NOTIFY."""
    desk = desks(5)
    desk.ear.heard(WORK_CHANNEL, payload)
    (facts,) = emitted.of("work.malformed")
    assert len(facts["payload"]) <= 100


async def test_a_claim_that_is_on_its_way_at_the_end_is_let_arrive_and_given_back(desks):
    """Cancelling it would strand what the database already gave us."""
    desk = desks(3)
    desk.ready = waiting(range(1, 9))
    desk.pool.open.clear()
    desk.pool.only = "claim"
    desk.claimer.start()
    await aeventually(lambda: desk.asked)
    desk.executor.drain()
    retiring = asyncio.create_task(desk.claimer.retire(within=20))
    await asyncio.sleep(0)
    desk.pool.open.set()
    await retiring
    assert [change.milestones[0].kind for _, change in desk.offered] == ["released"] * 3
    assert {change.status for _, change in desk.offered} == {Status.PENDING}
    await desk.claimer.step()
    assert len(desk.asked) == 1


async def test_a_cancel_that_overtakes_the_claim_it_is_for_is_not_lost(desks):
    """Its notification may arrive before the claim's answer."""
    desk = desks(5)
    desk.ready = waiting(range(1, 3))
    desk.pool.open.clear()
    desk.pool.only = "claim"
    desk.claimer.start()
    await aeventually(lambda: desk.asked)
    desk.ear.heard(WORK_CHANNEL, f"cancel:{UUID(int=2)}")
    desk.pool.open.set()
    await aeventually(lambda: desk.offered)
    ((attempt, change),) = desk.offered
    assert (attempt.id.int, change.status) == (2, Status.CANCELLED)


async def test_a_claim_that_fails_is_tried_again(desks):
    """The database was away."""
    desk = desks(5)
    desk.pool.answers = [StoreUnavailable("away")]
    desk.ready = [claimed(1)]
    desk.claimer.start()
    await aeventually(lambda: desk.offered)


@pytest.mark.parametrize(("owners", "least"), [(1, 50.0), (100, 50.0), (200, 150.0)])
async def test_the_more_owners_a_look_finds_the_longer_until_the_next(
    desks, monkeypatch, owners, least
):
    """It costs for each of them; with thousands, one after the other would keep the database from its work."""
    monkeypatch.setattr("tasks_app.worker.claimer._LOOK_SECONDS", 100.0)
    desk = desks(1)
    desk.ready = [claimed(number, owner=f"o{number}") for number in range(1, owners + 1)]
    desk.claimer.start()
    await aeventually(lambda: desk.asked)
    assert least < desk.claimer._until_look <= least + 50.0
