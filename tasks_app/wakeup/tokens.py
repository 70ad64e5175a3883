"""What this process remembers of tokens, so that checking one costs no statement as long as nothing can have changed."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeVar

from tasks_app.errors import StoreUnavailable
from tasks_app.events import emit
from tasks_app.store import Call, TokenFacts, find_tokens, touch_tokens
from tasks_app.store.tokens import TOUCH_SECONDS
from tasks_app.wakeup.trust import Trust

T = TypeVar("T")

YES_SECONDS = 60.0
"""Longest that a token is believed without being read again, whatever was heard and whether the database is there."""
# While revocations may go unheard, a token is read this often.
_UNTRUSTED_SECONDS = 1.0
# A token can be tried before the transaction that makes it has committed.
_NO_SECONDS = 5.0
_MOST_KNOWN = 20_000
_MOST_UNKNOWN = 5_000


class Runs(Protocol):
    """What runs statements."""

    async def run(self, call: Call[T]) -> T:
        """Execute and commit."""


class Known:
    """What was read of a token, and when; `facts` None: there is none of that id."""

    __slots__ = ("_begun", "_read_at", "facts", "touched")

    def __init__(self, facts: TokenFacts | None, read_at: float, begun: int | None) -> None:
        self.facts = facts
        self.touched = facts is None or (facts.idle is not None and facts.idle < TOUCH_SECONDS)
        self._read_at = read_at
        self._begun = begun

    def valid(self, now: float) -> TokenFacts | None:
        """The facts, unless the token is unknown, revoked or expired."""
        facts = self.facts
        if facts is None or facts.revoked:
            return None
        age = now - self._read_at
        return None if facts.expires_in is not None and age >= facts.expires_in else facts

    def is_fresh(self, now: float, trust: Trust) -> bool:
        """True while nothing can have changed, as far as a trusted link tells."""
        # Silence ends trust at the hub's next look; here the moment counts, as it bounds how late a revocation is.
        heard = trust.active and self._begun == trust.begun and not trust.is_silent(now)
        if self.facts is None:
            return now - self._read_at < _NO_SECONDS
        return now - self._read_at < (YES_SECONDS if heard else _UNTRUSTED_SECONDS)

    def outdate(self) -> None:
        """Have it read again, also by those who have it in their hands."""
        self._read_at = float("-inf")

    def is_bearable(self, now: float) -> bool:
        """True while it may be used although it can't be read again."""
        return self.facts is not None and now - self._read_at < YES_SECONDS


class Tokens:
    """The tokens that were asked for lately. Reads are gathered: one statement for all that were asked for meanwhile."""

    def __init__(
        self, pool: Runs, trust: Trust, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool = pool
        self._trust = trust
        self._clock = clock
        # Apart, so that those who guess can't push out those who know.
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._unknown: OrderedDict[str, Known] = OrderedDict()
        self._asked: dict[str, asyncio.Future[Known | Exception]] = {}
        self._hinted: set[str] = set()
        self._used: set[str] = set()
        self._work: asyncio.Task[None] | None = None

    def recall(self, token_id: str) -> Known | None:
        """What is remembered, if it is still fresh."""
        known = self._known.get(token_id) or self._unknown.get(token_id)
        return known if known is not None and known.is_fresh(self._clock(), self._trust) else None

    def holds(self, known: Known) -> bool:
        """False when a token that was good has to be looked at again."""
        now = self._clock()
        return known.is_fresh(now, self._trust) and known.valid(now) is not None

    def valid(self, known: Known) -> TokenFacts | None:
        """The facts of a token that is good now."""
        return known.valid(self._clock())

    def is_expected(self, token_id: str) -> bool:
        """True for an id that was a token when it was last asked for, or that the next read asks for anyway."""
        return token_id in self._known or token_id in self._asked

    async def find(self, token_id: str) -> Known:
        """The token, from memory or read. Raises StoreUnavailable where neither is possible."""
        known = self.recall(token_id)
        if known is not None:
            return known
        future = self._asked.get(token_id)
        if future is None:
            future = self._asked[token_id] = asyncio.get_running_loop().create_future()
            self._start()
        # Shielded: others wait for the same answer, and this client may hang up.
        read = await asyncio.shield(future)
        if isinstance(read, Known):
            return read
        last = self._known.get(token_id)
        if isinstance(read, StoreUnavailable) and last and last.is_bearable(self._clock()):
            return last
        raise read

    def note_use(self, known: Known) -> None:
        """Somebody has shown the token's secret: to be written down, now and then."""
        if not known.touched and known.facts is not None:
            known.touched = True
            self._used.add(known.facts.id)
            self._start()

    def forget(self, token_id: str) -> None:
        """The token has changed: neither what is remembered nor what is being read at this moment counts."""
        self._hinted.add(token_id)
        known = self._known.get(token_id)
        if known is not None:
            known.outdate()

    def _start(self) -> None:
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._run(), name="asyncpoll:tokens")

    async def _run(self) -> None:
        while self._asked or self._used:
            await self._read()
            await self._touch()

    async def _read(self) -> None:
        asked, self._asked = self._asked, {}
        if not asked:
            return
        self._hinted.clear()
        sent_at, begun = self._clock(), self._trust.begun if self._trust.active else None
        try:
            found = await self._pool.run(find_tokens(list(asked)))
        except Exception as error:
            # Whatever it is, those who asked must not wait for ever.
            for future in asked.values():
                future.set_result(error)
            return
        for token_id, future in asked.items():
            known = Known(found.get(token_id), sent_at, begun)
            if token_id in self._hinted:
                known.outdate()
            else:
                self._keep(token_id, known)
            future.set_result(known)

    def _keep(self, token_id: str, known: Known) -> None:
        kept, others, most = (
            (self._unknown, self._known, _MOST_UNKNOWN)
            if known.facts is None
            else (self._known, self._unknown, _MOST_KNOWN)
        )
        others.pop(token_id, None)
        kept[token_id] = known
        kept.move_to_end(token_id)
        if len(kept) > most:
            kept.popitem(last=False)

    async def _touch(self) -> None:
        used, self._used = self._used, set()
        if not used:
            return
        try:
            await self._pool.run(touch_tokens(sorted(used)))
        except StoreUnavailable as error:
            emit("tokens.untouched", count=len(used), error=error)
