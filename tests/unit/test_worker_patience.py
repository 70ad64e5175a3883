"""A worker whose event loop is blocked ends all the same: when its grace is over, or it was told twice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from signal import SIGTERM

import pytest

from tasks_app.worker import patience
from tasks_app.worker.patience import Patience
from tests.support import eventually

LONG = 600.0


class Loop:
    """An event loop in a thread of its own, which can be blocked."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.gave_up = threading.Event()
        self.codes: list[int] = []
        self.overdue = threading.Event()
        self._gate = threading.Event()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def patience(self, grace: float) -> Patience:
        """With it, as long as the loop has none."""
        made = Patience(self.loop, grace, self.overdue.is_set, self._give_up)
        made.start()
        return made

    def _give_up(self, code: int) -> None:
        self.codes.append(code)
        self.gave_up.set()

    def block(self) -> None:
        """As a task does that never awaits."""
        self.loop.call_soon_threadsafe(self._gate.wait)

    def end(self) -> None:
        """Let it go."""
        self._gate.set()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    monkeypatch.setattr(patience, "_ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(patience, "_LOOK_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(patience, "_CHECK_EVERY_SECONDS", 0.01)
    made = Loop()
    yield made
    made.end()


@pytest.mark.parametrize(("grace", "signals"), [(0.0, 1), (LONG, 2)])
def test_it_runs_out_with_the_grace_or_at_a_second_signal(loop: Loop, grace: float, signals: int):
    """Where the loop does not answer."""
    loop.block()
    heard = loop.patience(grace)
    for _ in range(signals):
        heard._hear(SIGTERM, None)
    eventually(loop.gave_up.is_set)
    assert loop.codes[0] == 0


def test_it_lasts_for_the_grace(loop: Loop):
    """A task may block the loop for so long, and end."""
    loop.block()
    heard = loop.patience(LONG)
    heard._hear(SIGTERM, None)
    assert not loop.gave_up.wait(0.5)


def test_it_lasts_while_the_loop_goes_round_and_not_beyond(loop: Loop):
    """The worker ends by itself then, in its own time; unless a task blocks it meanwhile."""
    heard = loop.patience(0.0)
    heard._hear(SIGTERM, None)
    assert not loop.gave_up.wait(0.5)
    loop.block()
    eventually(loop.gave_up.is_set)


def test_a_worker_that_has_ended_is_not_given_up(loop: Loop):
    """What is left to do then, with the loop at rest, may take any time."""
    heard = loop.patience(0.0)
    heard.end()
    loop.block()
    heard._hear(SIGTERM, None)
    eventually(lambda: not heard.is_alive())
    assert not loop.gave_up.is_set()


def test_without_a_signal_it_runs_out_where_an_attempt_is_overdue_and_the_loop_does_not_answer(
    loop: Loop,
):
    """Nobody else would end the process; a loop that answers ends the attempt itself."""
    heard = loop.patience(LONG)
    loop.overdue.set()
    assert not loop.gave_up.wait(0.5)
    loop.block()
    eventually(loop.gave_up.is_set)
    assert loop.codes[0] == 1
    heard.end()
    heard._hear(SIGTERM, None)
    heard._hear(SIGTERM, None)
