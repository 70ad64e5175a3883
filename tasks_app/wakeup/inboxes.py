"""Who waits for an inbox: a hint, or the look at all that are waited for, wakes them, and they read for themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice

from tasks_app.loops import Loop
from tasks_app.wakeup.topic import Alarm, Wake

_LARGEST_LOOK = 1_000
_IDLE_SECONDS = 60.0
_KEY_LENGTH = 24

Filled = Callable[[list[str]], Awaitable[Iterable[str]]]
"""Says which owners' inboxes have something to read."""


async def nowhere(owners: list[str]) -> Iterable[str]:
    """For a process that has no database to look at."""
    return ()


def key_of(owner: str) -> str:
    """What hints call the inbox of `owner`. Two owners in one key would wake each other in vain, and no more."""
    return hashlib.md5(owner.encode(), usedforsecurity=False).hexdigest()[:_KEY_LENGTH]


class InboxWaiter(Alarm):
    """One request that is held for an owner's inbox."""

    __slots__ = ("owner",)

    def __init__(self, owner: str) -> None:
        super().__init__()
        self.owner = owner


class Inboxes(Loop):
    """The held requests of one process, by inbox. Looks are gathered: one statement for all that were asked for
    meanwhile."""

    name = "inboxes"
    # As with the reader: waiters were promised an answer within 3 s.
    longest_pause_seconds = 1.0

    def __init__(self, filled: Filled) -> None:
        super().__init__()
        self._filled = filled
        self._waiters: dict[str, set[InboxWaiter]] = {}
        self._owners: dict[str, str] = {}
        self._asked: dict[str, None] = {}

    @property
    def waiting(self) -> int:
        """How many requests are held."""
        return sum(len(waiters) for waiters in self._waiters.values())

    def join(self, owner: str) -> InboxWaiter:
        """Register, before reading the inbox: what comes from now on is not missed. Leave with `leave`, always."""
        waiter = InboxWaiter(owner)
        self._waiters.setdefault(owner, set()).add(waiter)
        self._owners[key_of(owner)] = owner
        return waiter

    def leave(self, waiter: InboxWaiter) -> None:
        """Forget a waiter."""
        waiters = self._waiters[waiter.owner]
        waiters.discard(waiter)
        if not waiters:
            del self._waiters[waiter.owner], self._owners[key_of(waiter.owner)]

    def hint(self, key: str) -> None:
        """There is something new in an inbox."""
        if (owner := self._owners.get(key)) is not None:
            self._wake(owner, Wake.OFFER)

    def sweep(self) -> None:
        """Have every inbox looked at that is waited for."""
        if self._waiters:
            self._asked.update(dict.fromkeys(self._waiters))
            self.wake()

    def wake_all(self, why: Wake) -> None:
        """End every wait."""
        for owner in tuple(self._waiters):
            self._wake(owner, why)

    async def step(self) -> float:
        """Look once, and wake those with something to read. Raises StoreUnavailable; those are then asked for again."""
        owners = list(islice(self._asked, _LARGEST_LOOK))
        if not owners:
            return _IDLE_SECONDS
        for owner in owners:
            del self._asked[owner]
        try:
            filled = await self._filled(owners)
        except BaseException:
            # A cancellation as well: those who wait are still there.
            self._asked.update(dict.fromkeys(owners))
            raise
        for owner in filled:
            self._wake(owner, Wake.OFFER)
        return 0.0 if self._asked else _IDLE_SECONDS

    def _wake(self, owner: str, why: Wake) -> None:
        for waiter in tuple(self._waiters.get(owner, ())):
            waiter.wake(why)
