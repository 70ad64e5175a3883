"""A signal reaches the drain first and the server's own handler a moment later."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from tasks_app.serving.lifespan import DrainOnSignal
from tests.holdsite.holds import Holds
from tests.support import aeventually


@pytest.fixture
def servers_own() -> Iterator[list[int]]:
    """A server's handler, and the signals that it heard."""
    heard: list[int] = []

    def handler(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    previous = signal.signal(signal.SIGTERM, handler)
    yield heard
    signal.signal(signal.SIGTERM, previous)


async def test_the_drain_begins_before_the_server_hears(servers_own: list[int]) -> None:
    """Held requests are answered first, then the server stops as it would have."""
    holds = Holds()
    signals = DrainOnSignal(holds, grace_seconds=0.05)
    signals.chain()
    waiting = asyncio.create_task(holds.wait())
    await asyncio.sleep(0)
    signal.raise_signal(signal.SIGTERM)
    assert await waiting == "DRAINING"
    assert servers_own == []
    await aeventually(lambda: servers_own == [signal.SIGTERM])
    signals.unchain()


async def test_a_second_signal_is_passed_on_at_once(servers_own: list[int]) -> None:
    """Whoever sends it again does not want to wait."""
    signals = DrainOnSignal(Holds(), grace_seconds=3600)
    signals.chain()
    signal.raise_signal(signal.SIGTERM)
    assert servers_own == []
    signal.raise_signal(signal.SIGTERM)
    assert servers_own == [signal.SIGTERM]
    signals.unchain()


async def test_unchaining_gives_the_signals_back(servers_own: list[int]) -> None:
    """Unless somebody else has taken them since."""
    before = signal.getsignal(signal.SIGINT)
    signals = DrainOnSignal(Holds())
    signals.chain()
    assert signal.getsignal(signal.SIGINT) != before
    signals.unchain()
    assert signal.getsignal(signal.SIGINT) == before
    signal.raise_signal(signal.SIGTERM)
    assert servers_own == [signal.SIGTERM]


async def test_off_the_main_thread_nothing_is_chained() -> None:
    """Python refuses it there; the application must start all the same."""
    before = signal.getsignal(signal.SIGTERM)

    async def chain() -> None:
        DrainOnSignal(Holds()).chain()

    await asyncio.to_thread(asyncio.run, chain())
    assert signal.getsignal(signal.SIGTERM) == before
