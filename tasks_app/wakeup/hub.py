"""One per web process: knows who waits for what, and wakes exactly those.

Every wait is: register, read, wait, re-read. Nothing is ever answered from a message; a message only says what to read.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from uuid import UUID

from tasks_app.events import emit
from tasks_app.store import Snapshot
from tasks_app.wakeup.bundle import Bundle
from tasks_app.wakeup.inboxes import Filled, Inboxes, nowhere
from tasks_app.wakeup.message import ANYWHERE, Message, hints, inbox_hints, token_hints
from tasks_app.wakeup.offers import Offers
from tasks_app.wakeup.onlookers import Onlookers
from tasks_app.wakeup.reader import Cause, Reader, Rows
from tasks_app.wakeup.topic import Topic, Waiter, Wake, Watcher
from tasks_app.wakeup.trust import Trust, Turn

# A snapshot older than this is read again, however quiet it has been; the refresh of watched ids comes twice as often.
SNAPSHOT_SECONDS = 30.0
# Entries that nobody waits for are kept for the client's next poll, up to this many.
_MOST_IDLE_TOPICS = 20_000


class Hub:
    """The table of topics, and the rules that make it safe to answer from memory."""

    def __init__(
        self,
        read: Callable[[list[UUID]], Awaitable[Rows]],
        clock: Callable[[], float] = time.monotonic,
        filled: Filled = nowhere,
    ) -> None:
        self.trust = Trust()
        self.topics: dict[UUID, Topic] = {}
        self.reader = Reader(read, self.deliver)
        self.offers = Offers()
        self.inboxes = Inboxes(filled)
        self.onlookers = Onlookers()
        self.forget_token: Callable[[str], object] = lambda token_id: None
        """Called with the id of each token that has changed."""
        self._clock = clock
        self._trusted_from = 0

    @property
    def waiting(self) -> int:
        """How many waiters are registered."""
        return sum(len(topic.waiters) for topic in self.topics.values())

    def join(self, task_id: UUID, known: int | None, owner: str | None = None) -> Waiter:
        """Register a waiter, then have the row read unless memory is safe. Leave with `leave`, always.

        `known` is the client's version, None waits for the end. `owner` ends the wait on somebody else's task.
        """
        topic = self._topic(task_id)
        waiter = Waiter(topic, known, owner, self.reader.next_batch)
        topic.waiters.add(waiter)
        if self._is_safe(topic, known, owner):
            waiter.row = topic.snapshot
        else:
            self.reader.ask(task_id, Cause.FIRST)
        return waiter

    def leave(self, waiter: Waiter) -> None:
        """Forget a waiter. Its topic stays a while for the client's next poll, if there is a snapshot worth keeping."""
        self._part(waiter.topic, waiter)

    def confirm(self, waiter: Waiter) -> None:
        """Have the row of a waiter read once more, before its hold is said to have run out."""
        waiter.since = self.reader.next_batch
        self.reader.ask(waiter.topic.id, Cause.SWEEP)

    def is_current(self, waiter: Waiter) -> bool:
        """True when nothing can have changed since `waiter.row` was seen, as far as a trusted link tells."""
        return self._is_current(waiter.topic, waiter.row)

    def join_many(self, known: Mapping[UUID, int], owner: str | None = None) -> Bundle:
        """Register one bundle for many tasks; those that memory is not safe for are read. Leave with `leave_many`."""
        bundle = Bundle(known, owner, self.reader.next_batch)
        for task_id, version in known.items():
            topic = self._topic(task_id)
            topic.waiters.add(bundle)
            if self._is_safe(topic, version, owner):
                assert topic.snapshot is not None
                bundle.remember(topic.snapshot)
            else:
                bundle.unread.add(task_id)
        self.reader.ask_all(bundle.unread, Cause.FIRST)
        return bundle

    def leave_many(self, bundle: Bundle) -> None:
        """Forget a bundle, as `leave` does a waiter."""
        for task_id in bundle.tasks:
            topic = self.topics.get(task_id)
            if topic is not None:
                self._part(topic, bundle)

    def confirm_many(self, bundle: Bundle) -> None:
        """`confirm` for every task of a bundle, unless all are current."""
        if all(
            self._is_current(self.topics[task_id], watched.row)
            for task_id, watched in bundle.tasks.items()
            if not watched.lost
        ):
            return
        bundle.since = self.reader.next_batch
        bundle.unread.update(bundle.tasks)
        self.reader.ask_all(bundle.tasks, Cause.SWEEP)

    def receive(self, message: Message) -> None:
        """Act on a message of the bridge."""
        turn = self.trust.observe(message, self._clock())
        for task_id, version in hints(message.hints):
            self._hint(task_id, version)
        for token_id in token_hints(message.hints):
            self.forget_token(token_id)
        for key in inbox_hints(message.hints):
            self.inboxes.hint(key)
        for queue in message.queues:
            if queue == ANYWHERE:
                self.offers.offer_all()
            else:
                self.offers.offer(queue)
        if message.hints or message.queues:
            self.onlookers.note_change()
        self._turn(turn)

    def check_silence(self) -> None:
        """End trust when the bridge has been silent for too long."""
        self._turn(self.trust.check(self._clock()))

    def sweep(self, cause: Cause) -> None:
        """Re-read everything that has a waiter."""
        self.reader.ask_all((topic.id for topic in self.topics.values() if topic.waiters), cause)
        self.inboxes.sweep()

    def deliver(self, batch: int, rows: Rows, causes: Mapping[UUID, Cause]) -> None:
        """Hand the rows of a batch to those that registered before it was sent."""
        now = self._clock()
        for task_id, cause in causes.items():
            topic = self.topics.get(task_id)
            if topic is None:
                continue
            row = rows.get(task_id)
            if row is None:
                topic.discard(self.reader.next_batch)
            elif batch >= topic.stale_before:
                # A task that is over is never answered from memory.
                topic.snapshot = None if row.is_terminal else row
                topic.read_in, topic.read_at = batch, now
            for waiter in tuple(topic.waiters):
                if waiter.since > batch:
                    continue
                if row is None:
                    waiter.lose(task_id)
                else:
                    waiter.see(row, cause)

    def wake_all(self, why: Wake) -> None:
        """End every wait."""
        for topic in tuple(self.topics.values()):
            for waiter in tuple(topic.waiters):
                waiter.wake(why)
        self.offers.end_all(why)
        self.inboxes.wake_all(why)
        self.onlookers.wake_all(why)

    def tidy(self) -> None:
        """Drop entries that nobody waits for and that are too old, or too many, to serve another poll."""
        oldest = self._clock() - SNAPSHOT_SECONDS
        idle = [topic for topic in self.topics.values() if not topic.waiters]
        for topic in idle[: max(0, len(idle) - _MOST_IDLE_TOPICS)]:
            self._forget(topic)
        for topic in idle:
            if topic.read_at < oldest:
                self._forget(topic)

    def _topic(self, task_id: UUID) -> Topic:
        topic = self.topics.get(task_id)
        if topic is None:
            topic = self.topics[task_id] = Topic(task_id, self.reader.next_batch)
        return topic

    def _part(self, topic: Topic, watcher: Watcher) -> None:
        topic.waiters.discard(watcher)
        if not topic.waiters and topic.snapshot is None:
            self._forget(topic)

    def _is_current(self, topic: Topic, row: Snapshot | None) -> bool:
        return (
            self.trust.active
            and row is not None
            and topic.snapshot is not None
            and topic.read_in >= self._trusted_from
            and topic.snapshot.version == row.version
        )

    def _is_safe(self, topic: Topic, known: int | None, owner: str | None) -> bool:
        snapshot = topic.snapshot
        return (
            known is not None
            and snapshot is not None
            # Somebody else's task takes a read to be refused, as one that does not exist does: they can't be timed apart.
            and (owner is None or snapshot.owner == owner)
            and snapshot.version == known
            and not snapshot.status.is_terminal
            and self.trust.active
            and topic.read_in >= self._trusted_from
            and self._clock() - topic.read_at < SNAPSHOT_SECONDS
        )

    def _hint(self, task_id: UUID, version: int) -> None:
        topic = self.topics.get(task_id)
        if topic is None:
            return
        if version and topic.snapshot is not None and topic.snapshot.version >= version:
            return
        topic.discard(self.reader.next_batch)
        if topic.waiters:
            self.reader.ask(task_id, Cause.HINT)
        else:
            self._forget(topic)

    def _turn(self, turn: Turn) -> None:
        if Turn.NEW_EPOCH in turn:
            for topic in self.topics.values():
                topic.discard(self.reader.next_batch)
        if Turn.ENDED in turn:
            emit("hub.trust_ended", epoch=self.trust.epoch)
        if Turn.BEGAN in turn:
            self._trusted_from = self.reader.next_batch
            self.sweep(Cause.TRUST)
            self.onlookers.note_change()
            emit("hub.trust_began", epoch=self.trust.epoch)

    def _forget(self, topic: Topic) -> None:
        if self.topics.get(topic.id) is topic:
            del self.topics[topic.id]
