"""Events as log lines."""

from __future__ import annotations

import json
import logging
import re
from datetime import datetime
from uuid import UUID

import pytest

from tasks_app import events
from tasks_app.events import emit
from tasks_app.insights.done import Done
from tasks_app.observers import logs
from tasks_app.observers.repeats import SAID_AGAIN_SECONDS, Repeats
from tasks_app.observers.wording import Facts, singular


@pytest.fixture
def lines(caplog, monkeypatch):
    """The lines logged since, at any level."""
    monkeypatch.setattr(logs, "_repeats", Repeats())
    # Other observers, if an earlier test has installed any, want other facts.
    monkeypatch.setattr(events, "_listeners", [])
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
    "retry_in_seconds": 0.0,
}


def test_an_attempt_that_ends_is_one_line_with_its_verdict(lines):
    """A failure says what failed, and louder; a success gets its line when it is committed."""
    emit("task.finished", status="SUCCESS", **FINISHED)
    emit(
        "task.finished",
        **{**FINISHED, "status": "FAILED", "error_type": "ValueError", "error_message": "50 % off"},
    )
    failed = {"status": "PENDING", "error_type": "OSError", "error_message": "away"}
    emit("task.finished", **{**FINISHED, **failed, "retry_in_seconds": 0.81})
    emit("task.finished", **{**FINISHED, **failed})
    emit("task.finished", status=None, **FINISHED)
    name = f"demo.task {UUID(int=1)} attempt 2"
    assert lines() == [
        ("DEBUG", f"{name}: SUCCESS in 12 ms"),
        ("WARNING", f"{name}: FAILED (ValueError: 50 % off) in 12 ms"),
        ("WARNING", f"{name}: failed (OSError: away) in 12 ms; tried again in 0.8 s"),
        ("WARNING", f"{name}: failed (OSError: away) in 12 ms; tried again in less than 0.1 s"),
        ("INFO", f"{name}: does not count in 12 ms"),
    ]


DONE = Done('demo."task"', UUID(int=1), "default", 2, "SUCCESS", 12.34567, 0.5)


def test_a_task_that_is_over_is_a_line_of_json_and_fields_of_its_record(lines, caplog):
    """For programs: the ones that read text, and the ones that read records."""
    emit("tasks.done", ended=[DONE])
    ((level, text),) = lines()
    said = json.loads(text)
    assert datetime.fromisoformat(said.pop("at")).tzinfo is not None
    assert (level, said) == (
        "INFO",
        {
            "event": "ASYNC_TASK_DONE",
            "task": 'demo."task"',
            "task_id": str(UUID(int=1)),
            "queue": "default",
            "attempt": 2,
            "outcome": "SUCCESS",
            "duration_ms": 12.346,
            "queue_wait_ms": 0.5,
        },
    )
    [record] = caplog.records
    assert (record.event, record.task, record.outcome) == ("ASYNC_TASK_DONE", DONE.task, "SUCCESS")
    assert (record.attempt, record.duration_ms, record.queue_wait_ms) == (2, 12.34567, 0.5)


def test_a_task_that_is_over_is_not_told_above_the_level_of_its_logger(lines, monkeypatch):
    """Like any other line, and at no cost."""
    # Not caplog.set_level(), which keeps the line from its own handler as well.
    monkeypatch.setattr(logging.getLogger("tasks_app.done"), "level", logging.WARNING)
    monkeypatch.setattr(logging.getLogger("tasks_app.done"), "_cache", {})
    emit("tasks.done", ended=[DONE])
    assert lines() == []


def test_an_event_without_a_line_is_shown_as_it_is(lines):
    """At DEBUG."""
    emit("reader.read", asked=2, found=1)
    assert lines() == [("DEBUG", "reader.read {'asked': 2, 'found': 1}")]


@pytest.mark.parametrize("event", sorted(logs.LINES))
def test_every_line_can_be_written(lines, event):
    """With a number where it wants a number."""
    _, line = logs.LINES[event]
    facts = {
        name: [name] if words == " names" else 1.0 if kind == "f" or words else name
        for name, words, kind in re.findall(r"%\((\w+)( [\w ]+)?\)(?:\.\d)?(\w)", line)
    }
    emit(event, **facts)
    ((_, text),) = lines()
    assert "%(" not in text


def test_installing_twice_logs_once(lines):
    """Django may call ready() again."""
    logs.install()
    emit("task.promoted", count=3)
    assert len(lines()) == 1


def test_one_is_not_many(lines):
    """In the words of the line."""
    emit("task.promoted", count=1)
    emit("task.promoted", count=2)
    assert [text for _, text in lines()] == ["Due: 1 task", "Due: 2 tasks"]


@pytest.mark.parametrize(
    ("many", "one"),
    [("tasks", "task"), ("batches", "batch"), ("worker processes", "worker process")],
)
def test_singulars(many, one):
    """Of regular plurals."""
    assert singular(many) == one


def test_a_clean_stop_has_nothing_to_add(lines):
    """What is left behind is named where there is something."""
    emit("worker.stopped", id="w", stragglers=0, unwritten=0)
    emit("worker.stopped", id="w", stragglers=1, unwritten=0)
    emit("worker.stopped", id="w", stragglers=2, unwritten=1)
    assert [text for _, text in lines()] == [
        "Worker w stopped",
        "Worker w stopped; left behind: 1 task that did not stop",
        "Worker w stopped; left behind: 2 tasks that did not stop, 1 task whose end could not be written",
    ]


def test_names_are_written_as_names(lines):
    """Not as Python's tuple, and a text as it is."""
    for queues in (("red", "blue"), ("nope",), "all"):
        emit("worker.started", id="w", pid=1, queues=queues, concurrency=4, tasks=1)
    found = [re.search(r"queues (.*), concurrency", text) for _, text in lines()]
    assert [each and each[1] for each in found] == ["red, blue", "nope", "all"]


def test_a_pause_is_never_nothing(lines):
    """Loops wait some hundredths of a second at first."""
    emit("loop.failed", loop="upkeep", error=OSError("away"), failures=1, pause=0.04)
    assert lines()[0][1].endswith("; next in less than 0.1 s")


def test_silence_that_never_ended_has_no_length(lines):
    """No time is "inf s"."""
    emit("hub.rebuilt", silence_seconds=float("inf"))
    assert lines()[0][1] == "The channel layer was joined anew after silence from the start"
    assert Facts(seconds=4.0)["seconds silence"] == "4.0 s of silence"


def test_what_lasts_is_said_when_it_begins(lines):
    """Each trouble for itself, however often it comes."""
    for failures in range(1, 50):
        emit("loop.failed", loop="listener", error=OSError("away"), failures=failures, pause=5.0)
    emit("loop.failed", loop="upkeep", error=OSError("away"), failures=1, pause=5.0)
    emit("loop.recovered", loop="listener", failures=49)
    assert [text.partition(",")[0] for _, text in lines()] == [
        "listener failed",
        "upkeep failed",
        "listener works again",
    ]


def test_what_lasts_is_said_again_every_minute():
    """And at once when it had been over for a minute."""
    now = 0.0
    repeats = Repeats(lambda: now)
    said = []
    for now in [0.0, 5.0, 55.0, 60.0, 65.0, 119.0, 121.0, 121.0 + SAID_AGAIN_SECONDS]:
        if repeats.is_news("trouble"):
            said.append(now)
    assert said == [0.0, 60.0, 121.0, 121.0 + SAID_AGAIN_SECONDS]
