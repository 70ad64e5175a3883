"""How many tokens of one source may turn out to be nobody's."""

from __future__ import annotations

import asyncio

from tasks_app.hold.buckets import Buckets

# Who has mistyped one tries again, who guesses is told to wait.
_MISSES_PER_SECOND, _MISSES_AT_ONCE, _MOST_SOURCES = 2.0, 20.0, 10_000


class _Looking:
    """The ids of one source that are being looked up, and the signal that one of them was."""

    __slots__ = ("count", "settled")

    def __init__(self) -> None:
        self.count = 0
        self.settled = asyncio.Event()


class Guesses:
    """Counts an id as a miss before it is looked up, and no more once it has proved to be somebody's.

    Counted only afterwards, any number of guesses that are sent together would all be looked up.
    """

    def __init__(self) -> None:
        self._misses = Buckets(_MISSES_PER_SECOND, _MISSES_AT_ONCE, _MOST_SOURCES)
        self._looking: dict[str, _Looking] = {}

    async def begin(self, source: str) -> bool:
        """Count one; False if `source` has had its share. `settle` must follow where it is True."""
        while not self._misses.has(source):
            looking = self._looking.get(source)
            if looking is None:
                return False
            # Some of those may be somebody's: a gateway whose clients all come back at once is not to be refused.
            await looking.settled.wait()
        self._misses.take(source)
        self._looking.setdefault(source, _Looking()).count += 1
        return True

    def settle(self, source: str, missed: bool) -> None:
        """It was looked up."""
        if not missed:
            self._misses.give_back(source)
        looking = self._looking[source]
        looking.count -= 1
        settled, looking.settled = looking.settled, asyncio.Event()
        settled.set()
        if not looking.count:
            del self._looking[source]
