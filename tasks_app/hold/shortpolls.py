"""How often one caller may be answered at once about one task."""

from __future__ import annotations

import time
from collections import OrderedDict
from uuid import UUID

from tasks_app import conf

# Callers remembered; the one that has been quiet longest is forgotten first.
_MOST_CALLERS = 50_000


class ShortPolls:
    """A token bucket per task and caller: so many immediate answers a second, and as many at once."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[tuple[UUID, str], tuple[float, float, int]] = OrderedDict()

    def allows(self, task_id: UUID, caller: str, version: int, known: int) -> bool:
        """Take one answer out of the bucket; False when it is empty.

        An answer that brings a caller who follows (`known` is above 0) a version it was not told before costs nothing.
        """
        rate = float(conf.current().MAX_SHORT_POLLS_PER_SECOND)
        now = time.monotonic()
        left, seen_at, told = self._buckets.pop((task_id, caller), (rate, now, 0))
        left = min(rate, left + (now - seen_at) * rate)
        is_news = 0 < known < version and version > told
        allowed = is_news or left >= 1
        cost = 0 if is_news or not allowed else 1
        self._buckets[task_id, caller] = (left - cost, now, max(told, version))
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.popitem(last=False)
        return allowed


short_polls = ShortPolls()
