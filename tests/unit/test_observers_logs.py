"""Events as log lines."""

from __future__ import annotations

import logging
import re
from uuid import UUID

import pytest

from tasks_app.events import emit
from tasks_app.observers import logs


@pytest.fixture
def lines(caplog):
    """The lines logged since, at any level."""
    end = logs.install()
    caplog.set_level(logging.DEBUG, logger="tasks_app")
    yield lambda: [(record.levelname, record.getMessage()) for record in caplog.records]
    end()


FINISHED = {
    "id": UUID(int=1),
    "name": "demo.task",
    "attempt": 2,
    "duration_ms": 12.3,
    "queue_wait_ms": 1.0,
    "error_type": "",
    "error_message": "",
}


def test_an_end_is_one_line_with_its_verdict(lines):
    """A failure says what failed, and louder."""
    emit("task.finished", status="SUCCESS", **FINISHED)
    emit(
        "task.finished",
        **{**FINISHED, "status": "FAILED", "error_type": "ValueError", "error_message": "50 % off"},
    )
    emit("task.finished", status=None, **FINISHED)
    name = f"demo.task {UUID(int=1)} attempt 2"
    assert lines() == [
        ("INFO", f"{name}: SUCCESS in 12 ms"),
        ("WARNING", f"{name}: FAILED (ValueError: 50 % off) in 12 ms"),
        ("INFO", f"{name}: does not count in 12 ms"),
    ]


def test_an_event_without_a_line_is_shown_as_it_is(lines):
    """At DEBUG."""
    emit("reader.read", asked=2, found=1)
    assert lines() == [("DEBUG", "reader.read {'asked': 2, 'found': 1}")]


@pytest.mark.parametrize("event", sorted(logs.LINES))
def test_every_line_can_be_written(lines, event):
    """With a number where it wants a number."""
    _, line = logs.LINES[event]
    facts = {
        name: 1.0 if kind == "f" else name
        for name, kind in re.findall(r"%\((\w+)\)(?:\.\d)?(\w)", line)
    }
    emit(event, **facts)
    ((_, text),) = lines()
    assert "%(" not in text


def test_installing_twice_logs_once(lines):
    """Django may call ready() again."""
    logs.install()
    emit("task.promoted", count=3)
    assert len(lines()) == 1
