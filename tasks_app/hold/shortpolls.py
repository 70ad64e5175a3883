"""How often one caller may be answered at once about one task."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from tasks_app import conf

SHORTEST_HOLD_SECONDS = 0.2
"""A shorter hold is short polling by another name."""
# Buckets remembered; the one that has been quiet longest is forgotten first.
_MOST_BUCKETS = 50_000


@dataclass(frozen=True, slots=True)
class Brought:
    """What an answer says of a task: from the version that its client knew to the one that it brought."""

    task_id: UUID
    known: int
    version: int


class _Bucket:
    """What is left for one task and caller, and the newest version that the caller was told."""

    __slots__ = ("left", "seen_at", "told")

    def __init__(self, left: float, seen_at: float) -> None:
        self.left, self.seen_at, self.told = left, seen_at, 0

    def fill(self, rate: float, now: float) -> None:
        self.left = min(rate, self.left + (now - self.seen_at) * rate)
        self.seen_at = now

    def is_news(self, brought: Brought) -> bool:
        """Does it bring a caller who follows (`known` is above 0) a version that it was not told before?"""
        return 0 < brought.known < brought.version and brought.version > self.told


class ShortPolls:
    """A token bucket per task and caller: so many immediate answers a second, and as many at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: OrderedDict[tuple[UUID, str], _Bucket] = OrderedDict()

    def allows(self, caller: str, answer: Sequence[Brought]) -> bool:
        """Take one answer out of the bucket of each task; False, with nothing taken, when one of them is empty.

        Each, because a loop could otherwise ask for other tasks together each time. An answer with news costs nothing.
        """
        buckets = [self._filled(brought.task_id, caller) for brought in answer]
        told = list(zip(buckets, answer, strict=True))
        has_news = any(bucket.is_news(brought) for bucket, brought in told)
        if not has_news and any(bucket.left < 1 for bucket in buckets):
            return False
        for bucket, brought in told:
            bucket.left -= 0 if has_news else 1
            bucket.told = max(bucket.told, brought.version)
        return True

    def has_left(self, caller: str, task_id: UUID) -> bool:
        """True if `allows` would, for an answer without news."""
        return self._filled(task_id, caller).left >= 1

    def give_back(self, caller: str, task_id: UUID) -> None:
        """What was taken was worth it."""
        self._filled(task_id, caller).left += 1

    def _filled(self, task_id: UUID, caller: str) -> _Bucket:
        rate, now = float(conf.current().MAX_SHORT_POLLS_PER_SECOND), self._clock()
        bucket = self._buckets.get((task_id, caller))
        if bucket is None:
            bucket = self._buckets[task_id, caller] = _Bucket(rate, now)
            if len(self._buckets) > _MOST_BUCKETS:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end((task_id, caller))
        bucket.fill(rate, now)
        return bucket


short_polls = ShortPolls()
