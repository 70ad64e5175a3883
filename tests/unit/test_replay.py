"""What an answer replays of a task's history."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from asyncpoll.contract import Outcome
from tasks_app.hold import replay as replaying


async def test_what_happened_between_the_two_reads_comes_with_the_next_answer(monkeypatch):
    """An end is never told beside a row that still runs."""
    held = SimpleNamespace(row=SimpleNamespace(version=2), outcome=Outcome.CHANGED, reset=False)

    async def wait(asked: Any) -> Any:
        return held

    async def read(asked: Any, known: int) -> Any:
        return [SimpleNamespace(version=version) for version in (2, 3)]

    monkeypatch.setattr(replaying, "wait", wait)
    monkeypatch.setattr(replaying, "_read", read)
    answer = await replaying.replay(SimpleNamespace(known=1))  # type: ignore[arg-type]
    assert [event.version for event in answer.events] == [2]
    assert (answer.next_after, answer.gap, answer.has_more) == (2, False, False)
