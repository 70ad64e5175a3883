"""What a page that shows the whole waits for, and how late ends were told lately: arithmetic."""

from __future__ import annotations

from tasks_app.observers.lately import Lately
from tasks_app.wakeup.onlookers import Onlookers
from tasks_app.wakeup.topic import Wake

BOUNDS = (0.001, 0.01, 0.1)


async def test_a_change_between_two_polls_ends_the_second_at_once() -> None:
    """The page was fetched in between, and does not show it."""
    onlookers = Onlookers()
    mark = onlookers.mark
    onlookers.note_change()
    assert await onlookers.join(mark).woken(60) is Wake.ROW


async def test_who_has_seen_everything_waits_for_the_next_change() -> None:
    """And leaves nothing behind."""
    onlookers = Onlookers()
    alarm = onlookers.join(onlookers.mark)
    assert await alarm.woken(0.0) is Wake.TIMEOUT
    alarm.reset()
    onlookers.note_change()
    assert await alarm.woken(60) is Wake.ROW
    onlookers.leave(alarm)
    assert not onlookers._alarms


async def test_the_mark_of_another_process_says_nothing_of_changes_here() -> None:
    """It would otherwise end each poll at once, where polls take turns between processes."""
    onlookers, other = Onlookers(), Onlookers()
    onlookers.note_change()
    assert onlookers.is_stranger(other.mark) and not onlookers.is_stranger("")
    assert await onlookers.join(other.mark).woken(0.0) is Wake.TIMEOUT
    assert await onlookers.join("").woken(60) is Wake.ROW


def test_what_is_late_lately_is_told_apart_from_what_was_before() -> None:
    """Counts go on for ever; only those of the last looks matter."""
    lately = Lately(BOUNDS, looks=2)
    assert (lately.count, lately.at(0.5)) == (0, None)
    lately.look((0, 0, 9, 0))
    assert (lately.count, lately.at(0.5)) == (9, 0.1)
    lately.look((3, 0, 9, 0))
    lately.look((3, 1, 9, 0))
    assert (lately.count, lately.at(0.5), lately.at(0.95)) == (4, 0.001, 0.01)


def test_later_than_every_bound_is_not_called_less() -> None:
    """There is no bound to name."""
    lately = Lately(BOUNDS, looks=2)
    lately.look((0, 0, 1, 9))
    assert lately.at(0.05) == 0.1 and lately.at(0.5) is None
