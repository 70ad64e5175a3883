"""The time limit that attempts of one batch share."""

from __future__ import annotations

import asyncio
import gc

from tasks_app.worker.attempt import Attempt
from tasks_app.worker.deadlines import Deadline
from tests.support import aeventually
from tests.unit.claims import claimed


def attempt(number: int) -> Attempt:
    """An attempt that publishes nothing."""
    return Attempt(claimed(number), asyncio.get_running_loop(), lambda *_: None, 60.0)


async def test_those_that_still_run_at_the_limit_expire_and_those_that_are_over_do_not():
    """One timer for both."""
    expired: list[Attempt] = []
    deadline = Deadline(asyncio.get_running_loop(), 0.02, expired.append)
    long, short = attempt(1), attempt(2)
    deadline.guard(long)
    deadline.guard(short)
    deadline.release(short)
    await aeventually(lambda: expired)
    assert expired == [long]


async def test_one_that_begins_after_all_others_are_over_has_its_whole_time():
    """The timer of the others has gone with them."""
    expired: list[Attempt] = []
    deadline = Deadline(asyncio.get_running_loop(), 0.02, expired.append)
    first, second = attempt(1), attempt(2)
    deadline.guard(first)
    deadline.release(first)
    deadline.guard(second)
    await aeventually(lambda: expired)
    assert expired == [second]


async def test_what_is_over_is_let_go_while_another_runs_on():
    """Its arguments may be large."""
    deadline = Deadline(asyncio.get_running_loop(), 60.0, lambda _: None)
    long, short = attempt(1), attempt(2)
    for each in (long, short):
        deadline.guard(each)
    deadline.release(short)
    assert short not in gc.get_referents(deadline._guarded)
    assert long in gc.get_referents(deadline._guarded)
    deadline.release(long)
