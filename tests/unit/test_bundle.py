"""When a bundle has what it waits for: each kind of row, in any order."""

from __future__ import annotations

import random
import uuid
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from asyncpoll.contract import Status
from tasks_app.store import Snapshot
from tasks_app.wakeup.bundle import Bundle
from tasks_app.wakeup.reader import Cause
from tasks_app.wakeup.topic import Wake

IDS = [uuid.UUID(int=number) for number in range(1, 5)]


def row(task_id, version=1, owner="me", **facts):
    made = Snapshot(
        task_id, "t", "default", owner, Status.RUNNING, version, None, "", 1, "", "", False, False,
        datetime.now(UTC), None, None,
    )  # fmt: skip
    return replace(made, **facts)


@pytest.fixture
async def bundle():
    return Bundle(dict.fromkeys(IDS, 1), "me", since=1)


async def test_what_is_known_is_no_news(bundle):
    """Neither from memory nor from a read."""
    bundle.remember(row(IDS[0]))
    for task_id in IDS:
        bundle.see(row(task_id), Cause.FIRST)
    assert not bundle.has_news()
    assert await bundle.until(bundle.has_news, 0.001) is Wake.TIMEOUT


async def test_a_newer_version_and_an_end_are_news(bundle):
    """Each by itself."""
    bundle.see(row(IDS[0], 2), Cause.HINT)
    bundle.see(row(IDS[1], status=Status.SUCCESS), Cause.SWEEP)
    assert bundle.has_news()
    assert not bundle.is_settled()


async def test_turning_stalled_is_news(bundle):
    """For a task that was seen running before."""
    bundle.see(row(IDS[0], stalled=True), Cause.FIRST)
    assert not bundle.has_news()
    bundle.see(row(IDS[1]), Cause.FIRST)
    bundle.see(row(IDS[1], stalled=True), Cause.REFRESH)
    assert bundle.has_news()


async def test_missing_and_foreign_tasks_are_news_only_when_nothing_else_is_left(bundle):
    """The two alike."""
    for task_id in IDS[:3]:
        bundle.lose(task_id)
    assert not bundle.has_news()
    bundle.see(row(IDS[3], owner="you"), Cause.FIRST)
    assert bundle.has_news()
    assert bundle.is_settled()
    assert [watched.row for watched in bundle.tasks.values()] == [None] * 4


async def test_a_task_that_was_there_and_is_gone_is_news(bundle):
    """And one that was missing and comes is waited for like the others."""
    bundle.lose(IDS[0])
    bundle.see(row(IDS[0]), Cause.SWEEP)
    assert not bundle.has_news()
    bundle.lose(IDS[0])
    assert bundle.has_news()


async def test_the_counts_are_those_of_its_tasks_whatever_happened(bundle):
    """In any order of rows, other owners' rows and losses."""
    chance = random.Random(7)
    for _ in range(2_000):
        task_id = chance.choice(IDS)
        if chance.random() < 0.3:
            bundle.lose(task_id)
        else:
            owner = chance.choice(["me", "me", "you"])
            bundle.see(row(task_id, chance.randint(1, 2), owner), Cause.HINT)
        watched = bundle.tasks.values()
        assert bundle._moved == sum(each.moved for each in watched)
        assert bundle._missing == sum(each.lost and not each.moved for each in watched)
        if chance.random() < 0.1:
            bundle.__init__(dict.fromkeys(IDS, 1), "me", since=1)


async def test_it_is_read_when_everything_that_was_asked_for_has_come(bundle):
    """Rows and losses both count."""
    bundle.unread.update(IDS[:2])
    bundle.see(row(IDS[0]), Cause.FIRST)
    assert not bundle.is_read()
    bundle.lose(IDS[1])
    assert bundle.is_read()
