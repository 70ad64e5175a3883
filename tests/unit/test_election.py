"""Who is the bridge: the decisions, and what a candidate does with the server's answers."""

from __future__ import annotations

from typing import Any

import pytest

from tasks_app.wakeup import election
from tasks_app.wakeup.election import (
    FROZEN_SECONDS,
    UNHEARD_SECONDS,
    Election,
    Outlook,
    Vigil,
    is_unheard,
)

NEVER = float("-inf")


def test_a_bridge_that_is_heard_is_left_alone():
    """Whatever the time it has led."""
    vigil = Vigil()
    for now in range(100):
        assert not vigil.is_frozen(7, heard_at=now - 1.0, now=float(now))


def test_a_bridge_that_stays_silent_is_frozen():
    """Later than the server itself would have ended an idle session."""
    vigil = Vigil()
    assert not vigil.is_frozen(7, heard_at=99.0, now=99.0)
    assert not vigil.is_frozen(7, heard_at=99.5, now=99.5 + FROZEN_SECONDS - 0.1)
    assert vigil.is_frozen(7, heard_at=99.5, now=99.5 + FROZEN_SECONDS)


def test_a_new_bridge_has_its_own_time_to_be_heard():
    """Silence that began under another one is not held against it."""
    vigil = Vigil()
    assert not vigil.is_frozen(7, heard_at=NEVER, now=0.0)
    assert not vigil.is_frozen(8, heard_at=NEVER, now=FROZEN_SECONDS)
    assert vigil.is_frozen(8, heard_at=NEVER, now=2 * FROZEN_SECONDS)


def test_a_lock_that_nobody_holds_is_nobodys_silence():
    """The next try gets it."""
    assert not Vigil().is_frozen(None, heard_at=NEVER, now=1_000.0)


def test_a_bridge_resigns_when_none_of_its_beats_comes_back():
    """It has as long after winning as after a beat."""
    assert not is_unheard(leading_since=10.0, heard_own_at=NEVER, now=10.0 + UNHEARD_SECONDS - 0.1)
    assert is_unheard(leading_since=10.0, heard_own_at=NEVER, now=10.0 + UNHEARD_SECONDS)
    assert not is_unheard(leading_since=10.0, heard_own_at=20.0, now=20.0 + UNHEARD_SECONDS - 0.1)
    assert is_unheard(leading_since=10.0, heard_own_at=20.0, now=20.0 + UNHEARD_SECONDS)


class World:
    """A candidate whose server answers as told, and whose clock moves by half a second with each try."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.heard_at = self.heard_own_at = NEVER
        self.reaches_layer = True
        self.answers: list[tuple[bool, int | None]] = []
        self.asked: list[tuple[str, Any]] = []
        self.alive = 0
        self.election = Election(
            Outlook(lambda: self.heard_at, lambda: self.heard_own_at, lambda: self.reaches_layer),
            lambda: self.now,
        )
        monkeypatch.setattr(election, "execute", self._execute)
        monkeypatch.setattr(election.asyncio, "sleep", self._sleep)

    async def admitted(self) -> None:
        await self.election.admit(None, self._live)  # type: ignore[arg-type]

    def _live(self) -> None:
        self.alive += 1

    async def _execute(self, connection: Any, call: Any) -> Any:
        self.asked.append((call.statement, call.params.get("pid")))
        return self.answers.pop(0) if call.statement == "lead" else None

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds
        if len(self.asked) > 8:
            self.reaches_layer = True


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


async def test_a_candidate_tries_until_the_lock_is_free(world):
    """Each answer is a sign of life."""
    world.answers = [(False, 7), (False, 7), (True, 9)]
    await world.admitted()
    assert world.asked == [("lead", None)] * 3
    assert (world.alive, world.election.is_leading) == (2, True)


async def test_a_candidate_that_does_not_reach_the_layer_does_not_try(world):
    """It would be of no use to anybody."""
    world.reaches_layer = False
    world.answers = [(True, 9)]
    await world.admitted()
    assert [name for name, _ in world.asked] == ["ping"] * 9 + ["lead"]


async def test_a_frozen_bridge_is_deposed(world):
    """Once it has been silent for four to five seconds."""
    world.heard_at = 99.0
    world.answers = [(False, 7)] * 12 + [(True, 9)]
    await world.admitted()
    tries = world.asked.index(("depose", 7))
    assert FROZEN_SECONDS <= (tries - 1) * election.TRY_EVERY_SECONDS <= FROZEN_SECONDS + 1.5


async def test_a_connection_that_comes_back_ends_its_own_old_session(world):
    """It may be half open, and keep the lock from everybody."""
    world.answers = [(True, 9)]
    await world.admitted()
    world.election.left()
    assert not world.election.is_leading
    world.answers = [(True, 11)]
    await world.admitted()
    assert world.asked == [("lead", None), ("depose", 9), ("lead", None)]


async def test_who_resigned_stays_away_for_a_moment_and_who_was_cut_off_does_not(world):
    """So that another one goes first."""
    world.answers = [(True, 9), (True, 10)]
    await world.admitted()
    assert not world.election.is_over()
    assert world.election.left() == 0.0
    await world.admitted()
    world.now += UNHEARD_SECONDS
    assert world.election.is_over()
    assert world.election.left() > 0.0
    assert world.election.left() == 0.0


async def test_a_candidate_has_nothing_to_resign_from(world):
    """Being asked is no harm."""
    assert not world.election.is_over()
