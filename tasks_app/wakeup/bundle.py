"""One held request that waits for many tasks: one future, registered with the topic of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from tasks_app.store import Snapshot
from tasks_app.wakeup.reader import Cause
from tasks_app.wakeup.topic import Alarm, Wake, is_news


class Watched:
    """One task of a bundle. `lost`: there is none, or it is somebody else's; with a `row`, it was there before."""

    __slots__ = ("known", "lost", "moved", "row")

    def __init__(self, known: int) -> None:
        self.known = known
        self.row: Snapshot | None = None
        self.moved = False
        self.lost = False


class Bundle(Alarm):
    """Several tasks whose client knows a version of each. Wakes when it has what `until` asks for."""

    __slots__ = ("_enough", "_missing", "_moved", "cause", "owner", "since", "tasks", "unread")

    def __init__(self, known: Mapping[UUID, int], owner: str | None, since: int) -> None:
        super().__init__()
        self.tasks = {task_id: Watched(version) for task_id, version in known.items()}
        self.owner = owner
        self.since = since
        self.unread: set[UUID] = set()
        self.cause: Cause | None = None
        self._moved = self._missing = 0
        self._enough: Callable[[], bool] = self.has_news

    def remember(self, row: Snapshot) -> None:
        """Take a row from memory, which is no news."""
        self.tasks[row.id].row = row

    def see(self, row: Snapshot, cause: Cause) -> None:
        """Take note of a row that was read after this bundle registered."""
        if self.owner is not None and row.owner != self.owner:
            self.lose(row.id)
            return
        watched = self.tasks[row.id]
        is_first_news = not watched.moved and is_news(row, watched.row, watched.known)
        if is_first_news:
            self.cause = cause
        watched.row = row
        self._mark(watched, moved=watched.moved or is_first_news, lost=False)
        self._note(row.id)

    def lose(self, task_id: UUID) -> None:
        """Take note that there is no such task, or that it is somebody else's: the two can't be told apart."""
        watched = self.tasks[task_id]
        self._mark(watched, moved=watched.row is not None, lost=True)
        self._note(task_id)

    async def until(self, enough: Callable[[], bool], within: float) -> Wake:
        """Wait until `enough()` is true, at most `within` seconds; then TIMEOUT."""
        if enough():
            return Wake.ROW
        self._enough = enough
        self.reset()
        return await self.woken(within)

    def has_news(self) -> bool:
        """Has a task moved, or is there none left that could?"""
        return self._moved > 0 or self._missing == len(self.tasks)

    def is_settled(self) -> bool:
        """Is there no task left that could move?"""
        return self._moved + self._missing == len(self.tasks)

    def is_read(self) -> bool:
        """Was everything read that had to be?"""
        return not self.unread

    def _mark(self, watched: Watched, *, moved: bool, lost: bool) -> None:
        # Counted, as each row of a sweep asks whether it is enough.
        self._moved += moved - watched.moved
        self._missing += (lost and not moved) - (watched.lost and not watched.moved)
        watched.moved, watched.lost = moved, lost

    def _note(self, task_id: UUID) -> None:
        self.unread.discard(task_id)
        if self._enough():
            self.wake(Wake.ROW)
