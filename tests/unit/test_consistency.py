"""The checks that tests of faults rely on do find faults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.acceptance.consistency import Story, faults_of

RESCUED = Story(
    status="SUCCESS",
    version=6,
    attempt=2,
    failures=1,
    result=4,
    history=(
        (1, "enqueued", 0),
        (2, "started", 1),
        (3, "rescued", 1),
        (4, "started", 2),
        (5, "progress", 2),
        (6, "succeeded", 2),
    ),
    effects=(1, 2),
)


def but(*, at: int, event: tuple[int, str, int]) -> tuple[tuple[int, str, int], ...]:
    """The history with another event at that place."""
    return (*RESCUED.history[:at], event, *RESCUED.history[at + 1 :])


def test_a_task_that_was_rescued_and_then_succeeded_has_no_faults():
    """Also when its first attempt died before it had any effect."""
    assert not list(faults_of(RESCUED))
    assert not list(faults_of(replace(RESCUED, effects=(2,))))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"version": 7}, "has the versions"),
        ({"history": RESCUED.history[:3] + RESCUED.history[4:]}, "has the versions"),
        ({"history": but(at=4, event=(4, "progress", 2))}, "has the versions"),
        (
            {"history": (*RESCUED.history[:5], (6, "progress", 2))},
            "says progress of attempt 2 2 times",
        ),
        ({"effects": (1,)}, "has no effect of attempt 2"),
        ({"effects": (1, 2, 2)}, "ran attempt 2 2 times"),
        ({"effects": (2, 3)}, "has an effect of attempt 3"),
        (
            {"history": but(at=2, event=(3, "progress", 1))},
            "started attempt 2 after 1, while 1 ran",
        ),
        ({"history": but(at=4, event=(5, "progress", 1))}, "has progress of attempt 1 while 2 ran"),
        ({"history": but(at=4, event=(5, "failed", 2))}, "went on after its end"),
        ({"history": but(at=5, event=(6, "failed", 2))}, "ends FAILED"),
        ({"history": RESCUED.history[:5], "version": 5}, "ends nowhere"),
        ({"failures": 0}, "2 attempts and 1 failures"),
        ({"attempt": 3, "effects": (3,)}, "2 attempts and 1 failures"),
    ],
)
def test_a_story_that_contradicts_itself_is_found(changes, fault):
    """Whatever it is that is skipped, doubled, or counted twice."""
    assert any(fault in found for found in faults_of(replace(RESCUED, **changes)))
