"""Tells a hold that ran out from an answer that came out of a cache."""

from __future__ import annotations

from typing import Final

from asyncpoll.client.pauses import Chance, backoff
from asyncpoll.client.policy import PollPolicy

# Answers at once that told nothing: so many in a row are let pass before we slow down by ourselves.
_BURST: Final = 2
# A hint of at least this much is no invitation to a hot loop.
_SLOW_HINT_SECONDS: Final = 0.25


class Guard:
    """Against hot loops. `rollovers` counts the answers in a row that told nothing, `instant` those that came at once."""

    def __init__(self, policy: PollPolicy, chance: Chance) -> None:
        self.rollovers = 0
        self.instant = 0
        self._policy = policy
        self._chance = chance

    def news(self) -> None:
        """An answer told something."""
        self.rollovers = self.instant = 0

    def pause(self, hint: float, seconds: float, held: float) -> float:
        """The pause after an answer that told nothing: the server's hint, or longer if such answers come at once.

        `seconds` is how long the answer took, `held` how long it should have been held.
        """
        self.rollovers += 1
        if hint >= _SLOW_HINT_SECONDS or (held and seconds >= held / 2):
            self.instant = 0
            return hint
        self.instant += 1
        if self.instant <= _BURST:
            return hint
        retry = self.instant - _BURST - 1
        return backoff(retry, self._policy.base_delay, self._policy.max_delay, self._chance)
