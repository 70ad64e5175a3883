"""Milestones: made, folded, joined."""

from __future__ import annotations

from uuid import UUID

import pytest

from asyncpoll.contract import Status
from tasks_app.errors import NotJson
from tasks_app.store import Change, Milestone
from tasks_app.worker.milestones import fold, join, progress_milestone, window_seconds

TASK = UUID(int=1)


def test_folding_keeps_the_last_of_each_fact():
    """A later report that says nothing about progress does not erase it."""
    folded = fold(Milestone("progress", 0.5, "half", '{"a":1}'), Milestone("progress", None, "on"))
    assert folded == Milestone("progress", 0.5, "on", '{"a":1}')
    assert fold(folded, Milestone("progress", 0.6)) == Milestone("progress", 0.6, "on", '{"a":1}')


def test_progress_of_zero_is_a_fact():
    """A new stage may start over."""
    assert fold(Milestone("progress", 0.5), Milestone("progress", 0.0)).progress == 0.0


def test_versions_come_at_most_ten_a_second_and_slower_as_the_task_ages():
    """So that a task of a day does not write a million rows."""
    assert window_seconds(0.0) == window_seconds(10.0) == 0.1
    assert window_seconds(600.0) == 6.0


def test_a_report_is_stored_as_text_and_numbers_that_postgres_takes():
    """Whole numbers become floats: one array holds them all."""
    milestone = progress_milestone(1, "a\x00b", {"x": 1})
    assert milestone == Milestone("progress", 1.0, "ab", '{"x":1}')
    assert isinstance(milestone.progress, float)


@pytest.mark.parametrize("progress", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_progress_outside_0_to_1_is_refused(progress):
    """The task learns of it at once."""
    with pytest.raises(ValueError, match="fraction from 0 to 1"):
        progress_milestone(progress, "", None)


def test_data_that_is_not_json_is_refused():
    """In the task, where the mistake is."""
    with pytest.raises(NotJson):
        progress_milestone(None, "", {"x": float("nan")})


def test_joined_changes_have_all_milestones_and_the_last_status():
    """No version is skipped."""
    report = Change(TASK, 1, Status.RUNNING, (Milestone("progress", 0.5, "half", '{"a":1}'),))
    end = Change(TASK, 1, Status.SUCCESS, (Milestone("succeeded", 1.0),), result="3")
    joined = join(report, end)
    assert joined.status is Status.SUCCESS
    assert joined.result == "3"
    assert joined.milestones == (*report.milestones, Milestone("succeeded", 1.0, "half"))


def test_the_last_of_joined_milestones_carries_what_the_row_shall_show():
    """The row takes progress and message from the last one only."""
    first = Change(TASK, 1, Status.RUNNING, (Milestone("progress", 0.5),))
    second = Change(
        TASK, 1, Status.RUNNING, (Milestone("progress", None, "on"), Milestone("progress"))
    )
    joined = join(first, second)
    assert joined.milestones[-1] == Milestone("progress", 0.5, "on")
    assert len(joined.milestones) == 3
