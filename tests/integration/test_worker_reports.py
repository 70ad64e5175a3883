"""Reports become versions, and every version has its history row."""

from __future__ import annotations

import pytest

from asyncpoll.contract import Status
from tests import sample_tasks
from tests.support import aeventually
from tests.workers import ended, fetch, history, look, run_one, working

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_report_is_seen_while_the_task_runs():
    """Its progress and message are in the row, its data in the history."""
    async with working():
        handle = await sample_tasks.report.aenqueue([0.25], "seen")

        async def reported() -> bool:
            return (await look(handle)).version == 3

        await aeventually(reported)
        snapshot = await look(handle)
        assert (snapshot.status, snapshot.progress, snapshot.message) == (
            Status.RUNNING,
            0.25,
            "at 0.25",
        )
        sample_tasks.gates["seen"].set()
        await ended(handle)
    rows = await fetch(
        "SELECT data FROM tasks_app_taskevent WHERE task_id = %s AND version = 3", handle.id
    )
    assert rows == [({"number": 0.25},)]


async def test_each_report_that_has_its_time_is_a_version_and_none_is_skipped():
    """One after the other, each once the last was seen."""
    progress = [0.1, 0.2, 0.3, 0.4]
    async with working():
        handle = await sample_tasks.report_at_gates.aenqueue(progress)
        for number in progress:
            sample_tasks.gates[str(number)].set()

            async def reported(number: float = number) -> bool:
                return (await look(handle)).progress in (number, 1.0)

            await aeventually(reported)
        snapshot = await ended(handle)
    rows = await history(handle)
    assert [row[0] for row in rows] == list(range(1, snapshot.version + 1))
    assert [row[2] for row in rows if row[1] == "progress"] == progress


@pytest.mark.parametrize("task", [sample_tasks.report, sample_tasks.areport])
async def test_reports_faster_than_ten_a_second_are_folded_into_the_last(task):
    """A thousand reports make a handful of versions; the last of them is not lost."""
    async with working():
        snapshot = await run_one(task, [number / 1000 for number in range(1000)])
    rows = await history(snapshot.id)
    assert [row[0] for row in rows] == list(range(1, snapshot.version + 1))
    reported = [row[2] for row in rows if row[1] == "progress"]
    assert len(reported) < 100
    assert reported == sorted(reported)
    assert reported[-1] == 0.999
    assert (snapshot.progress, snapshot.message) == (1.0, "at 0.999")
