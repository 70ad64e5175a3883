"""The rules that make it safe to answer from memory: each test fails when its rule is taken out."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from asyncpoll.contract import Status
from tasks_app.store import Snapshot
from tasks_app.wakeup.hub import SNAPSHOT_SECONDS, Hub
from tasks_app.wakeup.message import Message
from tasks_app.wakeup.reader import LARGEST_BATCH, Cause
from tasks_app.wakeup.sweeper import REFRESH_SECONDS, SWEEP_SECONDS, Sweeper
from tasks_app.wakeup.topic import Wake

TASK = uuid.UUID("01a22caa-8b3c-7463-95d2-cdd668f18a5c")


class World:
    """A hub over a table of rows and a clock that the test moves."""

    def __init__(self):
        self.now = 100.0
        self.rows = {TASK: row(1)}
        self.reads = []
        self.during_read = None
        self.hub = Hub(self.read, clock=lambda: self.now)
        self.sequence = 0
        self.epoch = 1

    async def read(self, ids):
        self.reads.append(set(ids))
        found = {task_id: self.rows[task_id] for task_id in ids if task_id in self.rows}
        if self.during_read is not None:
            hook, self.during_read = self.during_read, None
            hook()
        return found

    async def settle(self):
        """Run the reader until nothing is asked for."""
        while self.hub.reader._asked:
            await self.hub.reader.step()

    def commit(self, version, status=Status.RUNNING, heard=True):
        self.rows[TASK] = replace(self.rows[TASK], version=version, status=status)
        if heard:
            self.tell(f"{TASK.hex}:{version}")

    def tell(self, hints="", beat=False, sequence=None, epoch=None):
        self.sequence = self.sequence + 1 if sequence is None else sequence
        self.epoch = self.epoch if epoch is None else epoch
        self.hub.receive(Message(self.epoch, self.sequence, beat, hints))

    async def trusted(self):
        self.tell(beat=True)
        await self.settle()
        return self

    async def remembered(self, version=1):
        """Trust, and a snapshot in memory that was read after it began."""
        await self.trusted()
        first = self.hub.join(TASK, version)
        await self.settle()
        self.hub.leave(first)
        self.reads.clear()
        return self


def row(version, status=Status.RUNNING, owner="", stalled=False):
    return Snapshot(
        TASK, "t", "default", owner, status, version, None, "", 1, "", "", stalled, False,
        datetime.now(UTC), None, None,
    )  # fmt: skip


@pytest.fixture
async def world():
    return World()


def woken(waiter):
    return waiter._future.result() if waiter._future.done() else None


async def test_a_commit_between_register_and_read_is_seen_by_the_read(world):
    """Rule 1: register, then read."""
    waiter = world.hub.join(TASK, 1)
    world.commit(2, heard=False)
    await world.settle()
    assert (woken(waiter), waiter.row.version) == (Wake.ROW, 2)


async def test_a_commit_while_the_row_is_being_read_is_not_missed(world):
    """Rule 1: its hint finds the waiter registered, and asks for another read."""
    waiter = world.hub.join(TASK, 1)
    world.during_read = lambda: world.commit(2)
    await world.settle()
    assert (woken(waiter), waiter.row.version, waiter.cause) == (Wake.ROW, 2, Cause.HINT)


async def test_a_waiter_never_joins_a_read_that_was_already_sent(world):
    """Rule 1: that read may be older than the version the client knows from elsewhere."""
    world.hub.join(TASK, 1)
    late = []

    def another_process_answered_version_2():
        world.commit(2, heard=False)
        late.append(world.hub.join(TASK, 2))

    world.during_read = another_process_answered_version_2
    await world.hub.reader.step()
    assert late[0].row is None
    await world.settle()
    assert woken(late[0]) is None
    assert late[0].row.version == 2


async def test_a_read_sent_before_its_entry_began_is_not_remembered(world):
    """Rule 1: an entry that was dropped and made again must not inherit what was on its way."""
    await world.trusted()
    first = world.hub.join(TASK, 1)

    def dropped_and_made_again():
        world.hub.leave(first)
        world.commit(2, heard=False)
        world.hub.join(TASK, 2)

    world.during_read = dropped_and_made_again
    await world.hub.reader.step()
    assert world.hub.topics[TASK].snapshot is None


async def test_a_renewed_poll_is_answered_from_memory(world):
    """Rule 2: the client's version, not over, of this epoch, read in trust, and young: no read."""
    await world.remembered()
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    assert waiter.row.version == 1
    assert world.reads == []
    assert world.hub.is_current(waiter)


@pytest.mark.parametrize("known", [0, 2, None])
async def test_any_other_version_than_the_remembered_one_is_read(world, known):
    """Rule 2: only exactly the client's version rolls over; reset is only ever said from a row."""
    await world.remembered()
    world.hub.join(TASK, known)
    await world.settle()
    assert world.reads == [{TASK}]


async def test_a_terminal_snapshot_is_read_again(world):
    """Rule 2: the end is answered with its result, which memory does not hold."""
    world.commit(5, Status.SUCCESS, heard=False)
    await world.remembered(version=5)
    world.hub.join(TASK, 5)
    await world.settle()
    assert world.reads == [{TASK}]


async def test_a_snapshot_of_thirty_seconds_is_read_again(world):
    """Rule 2: however quiet it has been."""
    await world.remembered()
    world.now += SNAPSHOT_SECONDS
    world.tell(beat=True)
    world.hub.join(TASK, 1)
    await world.settle()
    assert world.reads == [{TASK}]


async def test_a_snapshot_read_before_trust_began_is_read_again(world):
    """Rule 2: a commit between that read and the first beat may have gone unheard."""
    first = world.hub.join(TASK, 1)
    await world.settle()
    world.hub.leave(first)
    world.commit(2, heard=False)
    world.tell(beat=True)
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    assert (woken(waiter), waiter.row.version) == (Wake.ROW, 2)


async def test_nothing_is_answered_from_memory_without_trust(world):
    """Rule 2: silence proves nothing then."""
    await world.remembered()
    world.now += 2.5
    world.hub.check_silence()
    world.hub.join(TASK, 1)
    await world.settle()
    assert world.reads == [{TASK}]


async def test_a_newer_hint_discards_the_snapshot(world):
    """Rule 2: for a client that is between two polls as well."""
    await world.remembered()
    world.commit(2)
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    assert (woken(waiter), waiter.row.version) == (Wake.ROW, 2)


async def test_a_hint_that_is_not_newer_costs_no_read(world):
    """Rule 2: the row already says so."""
    await world.remembered()
    world.hub.join(TASK, 1)
    world.tell(f"{TASK.hex}:1")
    await world.settle()
    assert world.reads == []


async def test_absence_is_never_remembered(world):
    """Rule 2: a task may be committed a moment after somebody asked for it."""
    await world.trusted()
    del world.rows[TASK]
    early = world.hub.join(TASK, 0)
    await world.settle()
    assert woken(early) is Wake.GONE
    world.hub.leave(early)
    world.rows[TASK] = row(1)
    waiter = world.hub.join(TASK, 0)
    await world.settle()
    assert woken(waiter) is Wake.ROW


async def test_the_beginning_of_trust_re_reads_every_waiter(world):
    """Rule 3: what was committed before the first beat may have gone unheard."""
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    world.commit(2, heard=False)
    world.tell(beat=True)
    await world.settle()
    assert (woken(waiter), waiter.cause) == (Wake.ROW, Cause.TRUST)


async def test_a_gap_ends_trust_until_a_beat_has_re_read_every_waiter(world):
    """Rule 3: the missing message may have been about anybody."""
    await world.remembered()
    waiter = world.hub.join(TASK, 1)
    world.commit(2, heard=False)
    world.tell(sequence=world.sequence + 2)
    assert not world.hub.trust.active
    world.tell(beat=True)
    await world.settle()
    assert (woken(waiter), waiter.row.version) == (Wake.ROW, 2)


async def test_after_a_gap_within_an_epoch_memory_begins_anew(world):
    """Rules 2 and 3: what was read before the gap may be older than the message that is missing."""
    await world.remembered()
    world.commit(2, heard=False)
    world.tell(beat=True, sequence=world.sequence + 2)
    assert world.hub.trust.active
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    assert (woken(waiter), waiter.row.version) == (Wake.ROW, 2)


async def test_who_comes_between_a_hint_and_its_read_is_not_answered_from_memory(world):
    """Rule 2: the snapshot went with the hint, although nobody has read the row yet."""
    await world.remembered()
    first = world.hub.join(TASK, 1)
    world.commit(2)
    second = world.hub.join(TASK, 1)
    assert second.row is None
    await world.settle()
    assert woken(first) is woken(second) is Wake.ROW


async def test_a_row_that_is_gone_takes_its_snapshot_along(world):
    """Rule 2: absence is not remembered, and neither is what was there before."""
    await world.remembered()
    kept = world.hub.join(TASK, 1)
    del world.rows[TASK]
    world.hub.join(TASK, 0)
    await world.settle()
    assert woken(kept) is Wake.GONE
    assert world.hub.topics[TASK].snapshot is None


async def test_a_hold_that_ran_out_is_current_only_by_a_trusted_link(world):
    """Before STILL_RUNNING is said without a read."""
    await world.remembered()
    waiter = world.hub.join(TASK, 1)
    assert world.hub.is_current(waiter)
    world.tell(sequence=world.sequence + 2)
    assert not world.hub.is_current(waiter)
    world.tell(beat=True)
    assert not world.hub.is_current(waiter)
    await world.settle()
    assert world.hub.is_current(waiter)


async def test_a_confirmation_answers_with_a_row_read_from_now_on(world):
    """Whatever it says."""
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    world.hub.confirm(waiter)
    looking = asyncio.ensure_future(waiter.look(5))
    await asyncio.sleep(0)
    await world.settle()
    assert await looking is Wake.ROW
    assert world.reads == [{TASK}, {TASK}]


async def test_more_than_a_batch_is_read_in_several(world):
    """A thousand rows at a time, until nothing is asked for."""
    for number in range(LARGEST_BATCH + 5):
        world.hub.join(uuid.UUID(int=number), 0)
    assert await world.hub.reader.step() == 0.0
    assert await world.hub.reader.step() > 0
    assert [len(read) for read in world.reads] == [LARGEST_BATCH, 5]


async def test_hints_of_a_lower_epoch_and_of_an_old_number_are_still_hints(world):
    """Rule 3: they cost a read at most; ignoring one could cost an answer."""
    world.epoch, world.sequence = 5, 10
    await world.remembered()
    for sequence, epoch, version in ((3, 4, 2), (9, 5, 3)):
        waiter = world.hub.join(TASK, version - 1)
        await world.settle()
        world.rows[TASK] = row(version)
        world.hub.receive(Message(epoch, sequence, False, f"{TASK.hex}:{version}"))
        await world.settle()
        assert (woken(waiter), waiter.cause) == (Wake.ROW, Cause.HINT)
        world.hub.leave(waiter)


async def test_a_new_epoch_discards_every_snapshot(world):
    """Rule 4: the database may have been restored to a day when the row had other content at this version."""
    await world.remembered()
    world.rows[TASK] = replace(row(1), message="restored")
    world.tell(beat=True, epoch=2, sequence=1)
    assert world.hub.topics[TASK].snapshot is None
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    assert waiter.row.message == "restored"


async def test_a_read_sent_before_the_epoch_began_is_not_remembered(world):
    """Rule 4: it may have been read from what the restore took away."""
    await world.trusted()
    world.hub.join(TASK, 1)
    world.during_read = lambda: world.tell(beat=True, epoch=2, sequence=1)
    await world.hub.reader.step()
    assert world.hub.topics[TASK].snapshot is None


async def test_without_trust_every_second_re_reads_what_has_a_waiter(world):
    """Rule 5: one statement a second, only for those who wait."""
    sweeper = Sweeper(world.hub, clock=lambda: world.now)
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    world.commit(2, heard=False)
    await sweeper.step()
    assert woken(waiter) is None
    world.now += SWEEP_SECONDS
    await sweeper.step()
    await world.settle()
    assert (woken(waiter), waiter.cause) == (Wake.ROW, Cause.SWEEP)


async def test_with_trust_every_fifteen_seconds_re_read_what_has_a_waiter(world):
    """Rule 5: rows edited outside the store, and leases that ran out, are found."""
    await world.trusted()
    sweeper = Sweeper(world.hub, clock=lambda: world.now)
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    world.rows[TASK] = row(1, stalled=True)
    for _ in range(14):
        world.now += 1
        world.tell(beat=True)
        await sweeper.step()
        await world.settle()
    assert woken(waiter) is None
    world.now += REFRESH_SECONDS - 14
    world.tell(beat=True)
    await sweeper.step()
    await world.settle()
    assert (woken(waiter), waiter.row.stalled, waiter.cause) == (Wake.ROW, True, Cause.REFRESH)


async def test_two_seconds_of_silence_begin_the_sweeps(world):
    """Rules 3 and 5 together: a dead link costs at most silence, sweep and read."""
    await world.remembered()
    sweeper = Sweeper(world.hub, clock=lambda: world.now)
    waiter = world.hub.join(TASK, 1)
    world.commit(2, heard=False)
    started = world.now
    while woken(waiter) is None:
        world.now += 0.25
        await sweeper.step()
        await world.settle()
        assert world.now - started <= 3.0
    assert waiter.cause is Cause.SWEEP


async def test_a_deleted_task_ends_its_waits(world):
    """Rule 7: version 0, and then the row is gone."""
    await world.remembered()
    waiter = world.hub.join(TASK, 1)
    del world.rows[TASK]
    world.tell(f"{TASK.hex}:0")
    await world.settle()
    assert woken(waiter) is Wake.GONE


async def test_a_task_that_was_already_stalled_is_held_all_the_same(world):
    """Turning stalled ends a hold; being stalled would make every poll of it a short one."""
    world.rows[TASK] = row(1, stalled=True)
    waiter = world.hub.join(TASK, 1)
    await world.settle()
    assert woken(waiter) is None


async def test_somebody_elses_task_ends_the_wait_at_once(world):
    """From a row and from memory alike."""
    await world.trusted()
    world.rows[TASK] = row(1, owner="alice")
    for _ in range(2):
        stranger = world.hub.join(TASK, 1, owner="bob")
        await world.settle()
        assert woken(stranger) is Wake.ROW
        world.hub.leave(stranger)


async def test_entries_that_nobody_waits_for_are_forgotten(world):
    """Memory is for the next poll of a client, not for ever."""
    await world.remembered()
    assert TASK in world.hub.topics
    world.now += SNAPSHOT_SECONDS + 1
    world.hub.tidy()
    assert world.hub.topics == {}


async def test_a_waiter_that_leaves_before_its_first_read_leaves_nothing(world):
    """A client that hangs up at once."""
    world.hub.leave(world.hub.join(TASK, 0))
    assert world.hub.topics == {}
    await world.settle()
    assert world.hub.topics == {}


async def test_a_result_is_not_kept_in_memory(world):
    """Snapshots are small; a megabyte per watched task would not be."""
    await world.trusted()
    world.rows[TASK] = replace(row(3, Status.SUCCESS), result='"large"')
    waiter = world.hub.join(TASK, 0)
    await world.settle()
    assert waiter.row.result == '"large"'
    assert world.hub.topics[TASK].snapshot is None


async def test_a_failed_read_is_asked_for_again(world):
    """The database was away for a moment; nobody is forgotten."""

    async def fail(ids):
        raise OSError("away")

    waiter = world.hub.join(TASK, 0)
    real, world.hub.reader._read = world.hub.reader._read, fail
    with pytest.raises(OSError):
        await world.hub.reader.step()
    world.hub.reader._read = real
    await world.settle()
    assert woken(waiter) is Wake.ROW
