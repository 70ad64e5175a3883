"""Waiting for what happens to a task, with everything that has happened since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asyncpoll.contract import Outcome
from tasks_app.hold.waiting import Answer, Wait, wait
from tasks_app.owned import owned
from tasks_app.store import Event, read_events
from tasks_app.store.pool import loop_pool

# One answer brings so many versions, and this much of what they carry; the rest comes with the next one, at once.
_MOST_EVENTS = 200
_MOST_DATA_BYTES = 4 * 1_048_576


@dataclass(frozen=True, slots=True)
class Replay:
    """What happened after the version that the client knows. `next_after` is what it knows now.

    `gap`: older versions than these are missing from the history. `has_more`: the next answer comes at once.
    """

    held: Answer
    events: Sequence[Event]
    gap: bool
    next_after: int

    @property
    def has_more(self) -> bool:
        """True while the task has newer versions than these."""
        return self.next_after < self.held.row.version


async def replay(asked: Wait) -> Replay:
    """Wait until the task has a newer version than `asked.known`, and give those since. Raises like `wait`."""
    held = await wait(asked)
    version = held.row.version
    # A cursor that the task never had says nothing about what its client has seen.
    known = 0 if held.reset else asked.known
    if held.outcome not in (Outcome.CHANGED, Outcome.TERMINAL) or known == version:
        return Replay(held, (), gap=False, next_after=known)
    # Read after the row, and so perhaps newer than it: one answer tells one state of the task.
    events = [event for event in await owned(_read(asked, known)) if event.version <= version]
    first, last = (events[0].version, events[-1].version) if events else (version + 1, version)
    return Replay(held, events, gap=first > known + 1, next_after=last)


async def _read(asked: Wait, known: int) -> Sequence[Event]:
    pool = await loop_pool()
    return await pool.run(read_events(asked.task_id, known, _MOST_EVENTS, _MOST_DATA_BYTES))
