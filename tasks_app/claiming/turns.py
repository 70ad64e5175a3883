"""Whose turn it is: free places go round by owner, and to whom had fewest of late.

Start-time fair queueing over lanes (Goyal, Vin, Cheng 1996, with every task of weight and length 1): each task taken
adds one to its lane's tag, the lane with the smallest tag is next, and a lane that was idle resumes at most `credit`
behind the furthest, so that waiting saves up a bounded head start and no more.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from tasks_app.claiming.room import Room
from tasks_app.store import Lane, Share

# Lanes with a tag of their own; the others stand at the floor. Bounds the memory of a process, not fairness by much.
_MOST_TAGS = 10_000
# A claim visits each lane that it has a share in, whether there is something in it or not.
_MOST_GUESSES = 8
# Among more lanes than these, and than twice the places, those served longest ago are considered.
_FEW_LANES = 64


class Turns:
    """The lanes that may hold ready tasks, and how far each has got. `credit` is in tasks."""

    def __init__(self, credit: int) -> None:
        self._credit = credit
        self._furthest = 0
        self._tags: dict[Lane, int] = {}
        # In the order in which they were served last.
        self._ready: dict[Lane, None] = {}
        # By queue, the owner whom the last scan ended with: the next goes on from there.
        self.seen: dict[str, str] = {}

    def __bool__(self) -> bool:
        """True while some lane may hold ready tasks."""
        return bool(self._ready)

    def learn(self, lanes: list[Lane]) -> None:
        """A scan found ready tasks in these."""
        for lane in lanes:
            self._ready.setdefault(lane)
            self.seen[lane.queue] = lane.owner

    def relearn(self, lanes: list[Lane]) -> None:
        """A scan found ready tasks in these and in no others."""
        found = frozenset(lanes)
        self._ready = {lane: None for lane in self._ready if lane in found}
        self.learn(lanes)

    def guess(self, queue: str) -> None:
        """Something became ready on `queue`: likely of somebody who was served there lately."""
        lately = islice(reversed(self._tags), _MOST_GUESSES)
        self._ready.update((lane, None) for lane in lately if lane.queue == queue)

    def allot(self, places: int, room: Room | None = None) -> list[Share]:
        """Divide `places` among the lanes, one by one to whoever has got least far, as far as there is `room`."""
        if room is None and len(self._ready) == 1:
            return [Share(lane, places) for lane in self._ready]
        # A lane without room takes no place, so that any number of them may stand before one that has.
        most = len(self._ready) if room else max(_FEW_LANES, 2 * places)
        floor = self._floor
        heap = [
            (max(self._tags.get(lane, floor), floor), order, lane)
            for order, lane in enumerate(islice(self._ready, most))
        ]
        heapq.heapify(heap)
        quotas: Counter[Lane] = Counter()
        while heap and places:
            tag, order, lane = heap[0]
            if room is None or room.take(lane):
                quotas[lane] += 1
                places -= 1
                heapq.heapreplace(heap, (tag + 1, order, lane))
            else:
                heapq.heappop(heap)
        return [Share(lane, quota) for lane, quota in quotas.items()]

    def settle(self, shares: Sequence[Share], taken: Iterable[Lane]) -> None:
        """`taken` names the lane of each task that the claim of `shares` got; a lane that fell short holds no more."""
        got = Counter(taken)
        floor = self._floor
        for lane, quota in shares:
            self._ready.pop(lane, None)
            if got[lane] >= quota:
                self._ready[lane] = None
        # A credit is for getting past others. Whoever is alone would keep it, and whoever comes next be no faster.
        if len(got) == 1 and got.keys() >= self._ready.keys():
            floor = self._furthest
        for lane in got:
            self._serve(lane, got[lane], floor)
        while len(self._tags) > _MOST_TAGS:
            del self._tags[next(iter(self._tags))]

    @property
    def _floor(self) -> int:
        return self._furthest - self._credit

    def _serve(self, lane: Lane, count: int, floor: int) -> None:
        tag = max(self._tags.pop(lane, floor), floor) + count
        self._tags[lane] = tag
        self._furthest = max(self._furthest, tag)
