"""An event loop that is late sheds, and one burst does not make it late."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tasks_app.hold.admission import Account, Admission, Verdict
from tasks_app.hold.pulse import Pulse
from tasks_app.lateness import Lateness
from tasks_app.worker.pulse import WorkerPulse
from tests.support import aeventually


def verdict(admission: Admission, wants_hold: bool = True) -> Verdict:
    with admission.enter(Account("alice"), wants_hold) as said:
        return said


class World:
    """A pulse by a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.admission = Admission()
        self.pulse = Pulse(self.admission, lambda: self.now)

    async def beats(self, late: float, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            self.now += 0.25 + late
            await self.pulse.step()


async def test_a_loop_that_keeps_up_holds() -> None:
    """Whatever it does."""
    world = World()
    await world.beats(0.0, 10.0)
    assert world.admission.lag_seconds == 0
    assert verdict(world.admission) is Verdict.HOLD


async def test_one_burst_is_no_overload() -> None:
    """Thousands woken by one commit, and their next polls."""
    world = World()
    await world.beats(1.2, 1.0)
    await world.beats(0.5, 2.0)
    assert verdict(world.admission) is Verdict.HOLD


async def test_a_loop_that_stays_late_sheds_holds_and_nothing_else(emitted: Any) -> None:
    """Until it has caught up, which is told."""
    world = World()
    await world.beats(1.5, 6.0)
    assert verdict(world.admission) is Verdict.SHED
    assert verdict(world.admission, wants_hold=False) is Verdict.HOLD
    await world.beats(0.0, 4.0)
    assert verdict(world.admission) is Verdict.HOLD
    assert len(emitted.of("server.lags")) == len(emitted.of("server.caught_up")) == 1


async def test_a_long_freeze_is_forgotten_within_seconds() -> None:
    """A process that was stopped and continued is soon as good as before."""
    world = World()
    await world.beats(3_600.0, 1.0)
    assert verdict(world.admission) is Verdict.SHED
    await world.beats(0.0, 3.0)
    assert verdict(world.admission) is Verdict.HOLD


def test_a_beat_counts_by_its_time() -> None:
    """Ten late tenths are one late second."""
    often, seldom = Lateness(), Lateness()
    for _ in range(10):
        often.note(1.0, 0.1)
    seldom.note(1.0, 1.0)
    assert often.seconds == pytest.approx(seldom.seconds)


async def test_a_real_loop_that_is_blocked_again_and_again_sheds_and_recovers(
    settings: Any,
) -> None:
    """Measured, and not told."""
    settings.ASYNCPOLL = {"MAX_LAG_SECONDS": 0.05}
    admission = Admission()
    pulse = Pulse(admission)
    pulse.start()

    def blocked() -> bool:
        time.sleep(0.3)  # blocks the loop: that is what it notices
        return verdict(admission) is Verdict.SHED

    await aeventually(blocked)
    await aeventually(lambda: verdict(admission) is Verdict.HOLD)
    await pulse.stop()
    assert admission.lag_seconds == 0


def test_limits_count_live_requests_by_process_and_by_owner(settings: Any) -> None:
    """SHED beyond the first limits, refused beyond the second, and free again at once."""
    settings.ASYNCPOLL = {"MAX_HELD": 3, "MAX_HELD_PER_OWNER": 2}
    admission = Admission()
    inside = [admission.enter(Account(owner), True) for owner in ("a", "a", "a", "b", "c", "c")]
    said = [each.__enter__() for each in inside]
    hold, shed = Verdict.HOLD, Verdict.SHED
    assert said == [hold, hold, shed, hold, shed, shed]
    assert verdict(admission) is Verdict.REFUSE
    for each in inside:
        each.__exit__(None, None, None)
    assert (admission.held, admission.inside, dict(admission._accounts)) == (0, 0, {})
    assert verdict(admission) is Verdict.HOLD


def test_ten_thousand_are_held_by_default_and_two_thousand_of_one_owner(settings: Any) -> None:
    """As documented."""
    settings.ASYNCPOLL = {}
    admission = Admission()
    said = [admission.count_in(Account("one"), True, "status")[0] for _ in range(2_001)]
    assert said.count(Verdict.HOLD) == 2_000 and said[-1] is Verdict.SHED
    more = [admission.count_in(Account(str(number)), True, "status")[0] for number in range(8_001)]
    assert more.count(Verdict.HOLD) == 8_000 and more[-1] is Verdict.SHED


def test_a_crowd_is_shed_for_its_size_only_where_it_would_crowd_out_others(settings: Any) -> None:
    """Half of the process is nobody's crowd's; its owner has places of its own; a second crowd is not the first's victim."""
    settings.ASYNCPOLL = {"MAX_HELD": 20, "MAX_HELD_PER_OWNER": 4}
    admission = Admission()

    def held_of(asked: int, account: Account) -> int:
        before = admission.held
        for _ in range(asked):
            if admission.count_in(account, True, "long_poll")[0] is not Verdict.HOLD:
                admission.count_out(account, False, "long_poll")
        return admission.held - before

    assert held_of(100, Account("shop", is_crowd=True)) == 10
    assert held_of(100, Account("shop")) == 4
    assert held_of(100, Account("other", is_crowd=True)) == 4
    assert held_of(100, Account("third")) == 2
    assert admission.held == 20


async def test_the_pulse_of_a_process_can_start_again_on_another_loop() -> None:
    """As in tests, and in servers that restart their application."""
    from tasks_app.hold.pulse import start_pulse, stop_pulse

    start_pulse()
    await asyncio.sleep(0)
    await stop_pulse()
    start_pulse()
    await stop_pulse()


async def test_a_worker_that_stays_late_says_so(emitted: Any) -> None:
    """And when it has caught up."""
    now = 100.0
    pulse = WorkerPulse(lambda: now)
    for late in [1.5] * 6 + [0.0] * 20:
        now += 0.25 + late
        await pulse.step()
    assert len(emitted.of("worker.lags")) == len(emitted.of("worker.caught_up")) == 1
    assert emitted.of("worker.lags")[0]["lag_seconds"] > 1
