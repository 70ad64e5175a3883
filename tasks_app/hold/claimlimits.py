"""How often a caller's claims may be answered at once without bringing it anything."""

from __future__ import annotations

import time
from functools import lru_cache
from uuid import NAMESPACE_URL, UUID, uuid5

from tasks_app import conf
from tasks_app.errors import ClaimedTooOften
from tasks_app.hold.shortpolls import SHORTEST_HOLD_SECONDS, Brought, short_polls


class ClaimLimit:
    """For one claim of `queue` by `caller`, who is granted a hold of `granted_seconds`.

    Two buckets, each with as many as a task's: claims that are not held and find nothing, and those whose work is wasted,
    as they had been made before, or are given up at once. Who only holds is not refused for the former of others.
    """

    def __init__(self, queue: str, caller: str, granted_seconds: float) -> None:
        self._queue, self._caller = queue, caller
        self._is_short = granted_seconds < SHORTEST_HOLD_SECONDS
        self._began_at = time.monotonic()

    def begin(self) -> None:
        """Before anything is looked for. Raises ClaimedTooOften."""
        if not short_polls.has_left(self._caller, _bucket(self._queue, "wasted")):
            raise self._refusal(
                "had been made before, or were given up at once; give each a claim_id of its own, and wait for its answer"
            )
        # Taken before the look, or claims that are sent together would all pass.
        if self._is_short and not self._take("short"):
            raise self._refusal("brought nothing and were not held; send max_hold_seconds=25")

    def settle(self, is_repeated: bool, has_tasks: bool) -> None:
        """The claim has come to this."""
        if is_repeated:
            self._take("wasted")
        elif has_tasks and self._is_short:
            short_polls.give_back(self._caller, _bucket(self._queue, "short"))

    def abandon(self) -> None:
        """The client has hung up."""
        if time.monotonic() - self._began_at < SHORTEST_HOLD_SECONDS:
            self._take("wasted")

    def _take(self, kind: str) -> bool:
        return short_polls.allows(self._caller, [Brought(_bucket(self._queue, kind), 0, 0)])

    def _refusal(self, which: str) -> ClaimedTooOften:
        most = conf.current().MAX_SHORT_POLLS_PER_SECOND
        return ClaimedTooOften(f"More than {most} claims a second of this queue {which}.")


@lru_cache(maxsize=1_000)
def _bucket(queue: str, kind: str) -> UUID:
    """What limits call the claims of `queue`; no task has such an id."""
    return uuid5(NAMESPACE_URL, f"asyncpoll:{kind} claims of {queue}")
