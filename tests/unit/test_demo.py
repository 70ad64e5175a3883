"""The demo task: real work on real input, findings that are true, progress to the end."""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from asyncpoll.demo import dependency_report
from tasks_app.context import running
from tasks_app.errors import Cancelled
from tests.unit.fakes import FakeBook
from tests.unit.inspection.made_up import Site, findings, reasons


def test_one_changed_byte_in_a_real_distribution_is_the_only_finding(tmp_path: Path) -> None:
    """A copy of an installed distribution is clean; the same copy with one byte flipped is not."""
    site = Site(tmp_path)
    for file in distribution("sqlparse").files or ():
        if "__pycache__" not in file.parts:
            target = Path(os.path.normpath(site.path / file))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), target)
    assert site.findings() == []

    victim = site.path / "sqlparse" / "sql.py"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    report = site.inspect()
    assert findings(report) == [("sqlparse", "changed", "sqlparse/sql.py")]
    assert reasons(report) == ["its sha256 differs from RECORD"]


class Attempt:
    """Stands in for a worker's attempt and keeps what the task reports to it. It is cancelled at a message."""

    def __init__(self) -> None:
        self.told: list[tuple[float | None, str]] = []
        self.steps = FakeBook()
        self.cancel_at = "never"

    def report(self, progress: float | None = None, message: str = "", data: Any = None) -> None:
        self.told.append((progress, message))

    def raise_if_cancelled(self) -> None:
        if self.told[-1][1].startswith(self.cancel_at):
            raise Cancelled("demo.dependency_report", UUID(int=1))


@pytest.fixture
def attempt() -> Iterator[Attempt]:
    """The attempt that the test's own code belongs to."""
    attempt = Attempt()
    token = running.set(attempt)  # type: ignore[arg-type]
    yield attempt
    running.reset(token)


def test_the_task_inspects_this_python_and_reports_to_its_attempt(attempt: Attempt) -> None:
    """It finds what this test runs on, and its last word is that it is done."""
    report = dependency_report.func(limit=2)
    assert [one["version"] for one in report["distributions"]] == [
        distribution(one["name"]).version for one in report["distributions"]
    ]
    assert report["summary"]["distributions_inspected"] == 2
    assert attempt.told[-1][0] == 1.0
    assert any(message.startswith("checking ") for _, message in attempt.told)


def test_another_attempt_begins_where_the_first_two_stages_ended(attempt: Attempt) -> None:
    """It has their results from the first attempt, and gives the same report."""
    report = dependency_report.func(limit=2)
    assert set(attempt.steps.kept) == {"gather", "normalise"}
    attempt.told.clear()
    assert dependency_report.func(limit=2) == report
    assert attempt.told[0][1].startswith("reading RECORD of 0 of ")


@pytest.mark.parametrize("stage", ["gathering", "normalising", "reading", "checking", "looking"])
def test_the_task_stops_between_two_items_when_it_is_cancelled(
    attempt: Attempt, stage: str
) -> None:
    """In every stage, and not a report later."""
    attempt.cancel_at = stage
    with pytest.raises(Cancelled, match="was asked to stop"):
        dependency_report.func(limit=2)
    assert [message for _, message in attempt.told if message.startswith(stage)] == [
        attempt.told[-1][1]
    ]


def test_the_task_refuses_a_bad_limit(attempt: Attempt) -> None:
    """It fails with value and rule before it has looked at anything."""
    with pytest.raises(ValueError, match="limit is 0: give a whole number from 1 up"):
        dependency_report.func(limit=0)
    assert attempt.told == []


def test_a_bad_limit_is_not_tried_again_and_trouble_with_the_disk_is() -> None:
    """The arguments of another attempt are the same."""
    assert not dependency_report.retry_policy.covers(ValueError)
    assert dependency_report.retry_policy.covers(OSError)


def test_a_caller_can_submit_the_task_and_choose_nothing_but_the_limit() -> None:
    """It is exposed over HTTP, so no parameter may point it at a path."""
    assert (dependency_report.name, dependency_report.expose) == ("demo.dependency_report", True)
    assert list(inspect.signature(dependency_report.func).parameters) == ["limit"]
