"""How milestones are made, folded and joined: pure, and the same for every way of running a task."""

from __future__ import annotations

from typing import Any

from tasks_app import conf
from tasks_app.models.status import EventKind
from tasks_app.steps import check_progress
from tasks_app.store import Change, Milestone, StepResult
from tasks_app.store.jsontext import clean_text, to_json

MESSAGE_CHARACTERS = 2_000
# Ten versions a second are as many as a reader can use; a long task gets about a hundred per tenfold of its age.
_SHORTEST_WINDOW_SECONDS = 0.1
_WINDOWS_PER_AGE = 100


def progress_milestone(progress: float | None, message: str, data: Any) -> Milestone:
    """What `report()` stores. Raises ValueError for a progress outside 0–1, NotJson for unfit data."""
    check_progress(progress)
    return Milestone(
        EventKind.PROGRESS.value,
        None if progress is None else float(progress),
        clean_text(str(message))[:MESSAGE_CHARACTERS],
        None if data is None else to_json(data, "data", conf.current().MAX_RESULT_BYTES),
    )


def step_milestone(name: str, result: str) -> Milestone:
    """What a step that was done stores: its result (JSON text) for later attempts, its name for whoever waits."""
    return Milestone(
        EventKind.STEP.value,
        message=f"Step {name!r} is done.",
        data=to_json({"step": name}, "data"),
        step=StepResult(name, result),
    )


def fold(earlier: Milestone | None, later: Milestone) -> Milestone:
    """One milestone instead of two: of each fact the last that was said."""
    if earlier is None:
        return later
    return later._replace(
        progress=earlier.progress if later.progress is None else later.progress,
        message=later.message or earlier.message,
        data=earlier.data if later.data is None else later.data,
    )


def window_seconds(age_seconds: float) -> float:
    """How long the next version has to wait. Formula: max(0.1, age / 100)."""
    return max(_SHORTEST_WINDOW_SECONDS, age_seconds / _WINDOWS_PER_AGE)


def join(earlier: Change, later: Change) -> Change:
    """Both changes of one attempt as one: all milestones, and where the later leaves the task.

    The row takes its progress and message from the last milestone, so that one carries what it does not say itself.
    """
    before = earlier.milestones[-1]
    *between, last = later.milestones
    for milestone in between:
        before = fold(before, milestone)
    last = last._replace(
        progress=before.progress if last.progress is None else last.progress,
        message=last.message or before.message,
    )
    return later._replace(milestones=(*earlier.milestones, *between, last))
