"""How long tests waited: from the test, with its report, to the next run's plan."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from asyncpoll.pytest_plugin import plans, reruns

_WAITS = pytest.StashKey[list[tuple[str, float]]]()
_ATTRIBUTE = "asyncpoll_waits"


def note(item: pytest.Item, task: str, duration_ms: float) -> None:
    """Remember that `item` waited so long for a task that ended well."""
    item.stash.setdefault(_WAITS, []).append((task, duration_ms))


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Let `report` take along what `item` has waited for since its last report."""
    if waits := item.stash.get(_WAITS, None):
        setattr(report, _ATTRIBUTE, list(waits))
        waits.clear()


class Recorder:
    """Gathers what all tests waited for, in whichever process, and writes the next run's plan at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._durations_ms: defaultdict[str, list[float]] = defaultdict(list)
        self._not_tried_again = 0
        self._says: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what came along with a test's report."""
        for task, duration_ms in getattr(report, _ATTRIBUTE, ()):
            self._durations_ms[task].append(duration_ms)
        if report.failed and "async_task" in report.keywords and reruns.is_missing(self._config):
            self._not_tried_again += 1

    def pytest_sessionfinish(self) -> None:
        """Write the plan, if anything was measured."""
        if self._durations_ms:
            self._says = plans.update(self._config, self._durations_ms)
        if self._not_tried_again:
            self._says.append(
                f"{self._not_tried_again} failed without another try, as pytest-rerunfailures is not installed: "
                "pip install pytest-rerunfailures"
            )

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was measured."""
        if self._says:
            # Not section(), below which the first line would end the progress line once more.
            terminalreporter.write_sep("=", "asyncpoll")
            for line in self._says:
                terminalreporter.write_line(line)
