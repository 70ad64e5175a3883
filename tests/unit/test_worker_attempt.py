"""`current_task().report()`: what becomes a version, and what is folded."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tasks_app.errors import NotJson
from tasks_app.store import Milestone
from tasks_app.worker.attempt import Attempt
from tests.support import aeventually
from tests.unit.claims import claimed


class Published(list):
    """The milestones an attempt published."""

    def attempt(self, **facts: Any) -> Attempt:
        loop = asyncio.get_running_loop()
        return Attempt(
            claimed(**facts), loop, lambda attempt, milestone: self.append(milestone), 1e9
        )

    @property
    def progress(self) -> list[float | None]:
        return [milestone.progress for milestone in self]


async def test_a_report_is_published_at_once_and_those_that_follow_closely_as_one():
    """The last of each fact counts."""
    published = Published()
    attempt = published.attempt()
    attempt.report(0.1, "first")
    await aeventually(lambda: len(published) == 1)
    attempt.report(0.2, "second", {"a": 1})
    attempt.report(0.3)
    attempt.report(0.4)
    await aeventually(lambda: len(published) == 2)
    assert published == [
        Milestone("progress", 0.1, "first"),
        Milestone("progress", 0.4, "second", '{"a":1}'),
    ]


async def test_reports_from_threads_are_published_on_the_loop():
    """Also from several at once."""
    published = Published()
    attempt = published.attempt()
    names: set[str] = set()
    attempt._publish = lambda _, milestone: names.add(threading.current_thread().name)
    threads = [threading.Thread(target=attempt.report, args=(0.5,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    await aeventually(lambda: names)
    assert names == {threading.current_thread().name}


async def test_what_was_not_published_is_taken_with_the_outcome():
    """The window does not swallow the last report."""
    published = Published()
    attempt = published.attempt()
    attempt.report(0.1)
    await aeventually(lambda: published)
    attempt.report(0.2)
    attempt.report(None, "last")
    assert attempt.take_report() == Milestone("progress", 0.2, "last")
    assert attempt.take_report() is None


async def test_a_task_has_a_bounded_number_of_milestones_and_keeps_the_last(settings):
    """Beyond the limit reports fold until the end, which has a place of its own."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_EVENTS": 10}
    published = Published()
    attempt = published.attempt(version=6)
    for number in range(20):
        attempt.report(number / 20)
        attempt._publish_report()
    assert published.progress == [0.0, 0.05]
    assert attempt.take_report() == Milestone("progress", 0.95)


async def test_a_report_after_the_end_is_dropped():
    """By a thread that was left behind, say."""
    published = Published()
    attempt = published.attempt()
    attempt.is_over = True
    attempt.report(0.5)
    attempt._publish_report()
    assert not published


async def test_a_report_to_a_loop_that_has_gone_raises_nothing():
    """The worker left, the thread did not."""
    loop = asyncio.new_event_loop()
    attempt = Attempt(claimed(), loop, lambda *_: None, 0.0)
    loop.close()
    attempt.report(0.5)


@pytest.mark.parametrize(
    ("report", "error"),
    [((1.5,), ValueError), ((None, "", {"a": object()}), NotJson)],
)
async def test_an_unfit_report_raises_in_the_task_and_publishes_nothing(report, error):
    """Where the mistake is."""
    published = Published()
    attempt = published.attempt()
    with pytest.raises(error):
        attempt.report(*report)
    assert attempt.take_report() is None
