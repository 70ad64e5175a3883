"""What the limits of running tasks leave room for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tasks_app.store import Lane


class Room:
    """Places left by queue and by owner, counted down as they are taken. Tasks without an owner have no owner's limit."""

    def __init__(
        self, per_queue: Mapping[str, int], per_owner: int, running: Mapping[Lane, int]
    ) -> None:
        self._per_queue = per_queue
        self._per_owner = per_owner
        self._on_queue: Counter[str] = Counter()
        self._of_owner: Counter[str] = Counter()
        for lane, count in running.items():
            self._count(lane, count)

    def take(self, lane: Lane) -> bool:
        """Take a place for one task of `lane`, if there is one."""
        most = self._per_queue.get(lane.queue)
        if most is not None and self._on_queue[lane.queue] >= most:
            return False
        if self._per_owner and lane.owner and self._of_owner[lane.owner] >= self._per_owner:
            return False
        self._count(lane, 1)
        return True

    def _count(self, lane: Lane, count: int) -> None:
        self._on_queue[lane.queue] += count
        self._of_owner[lane.owner] += count
