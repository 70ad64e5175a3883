"""May a hub answer from memory? Pure bookkeeping over the messages it received."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto

from tasks_app.wakeup.message import Message

# Without a beat for this long nothing vouches for silence. Three seconds would break the promise to answer within 3 s.
SILENCE_SECONDS = 2.0


class Turn(Flag):
    """What a message changed."""

    NONE = 0
    NEW_EPOCH = auto()
    ENDED = auto()
    BEGAN = auto()


@dataclass(slots=True)
class Trust:
    """Trust begins with a beat, and ends with a gap in the sequence, a newer epoch, or silence."""

    active: bool = False
    epoch: int | None = None
    sequence: int = 0
    heard_at: float = float("-inf")
    begun: int = 0
    """How many times trust has begun: what was remembered in one of them is worth nothing in another."""

    def observe(self, message: Message, now: float) -> Turn:
        """Take note of a message received at `now` (seconds, monotonic)."""
        if self.active and self.epoch is not None and message.epoch < self.epoch:
            # A leader that does not know yet that it was succeeded. Its hints are still hints.
            return Turn.NONE
        if message.epoch != self.epoch:
            turn = Turn.NEW_EPOCH | self._end()
            self.epoch, self.sequence = message.epoch, message.sequence
        elif message.sequence <= self.sequence:
            return Turn.NONE
        else:
            turn = self._end() if message.sequence != self.sequence + 1 else Turn.NONE
            self.sequence = message.sequence
        return turn | (self._beat(now) if message.beat else Turn.NONE)

    def check(self, now: float) -> Turn:
        """End trust after silence."""
        return self._end() if self.active and self.is_silent(now) else Turn.NONE

    def is_silent(self, now: float) -> bool:
        """True when the last beat is too long ago."""
        return now - self.heard_at >= SILENCE_SECONDS

    def _beat(self, now: float) -> Turn:
        self.heard_at = now
        if self.active:
            return Turn.NONE
        self.active = True
        self.begun += 1
        return Turn.BEGAN

    def _end(self) -> Turn:
        ended, self.active = self.active, False
        return Turn.ENDED if ended else Turn.NONE
