"""For suites that wait for tasks: a marker, timing learnt from the last run, and one more try for what is marked.

Loaded in every pytest run of an environment that has asyncpoll, so what costs anything is imported when it is used.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pytest

from asyncpoll.pytest_plugin import durations, reruns
from asyncpoll.pytest_plugin.fixtures import poll_plan, wait_for_terminal

__all__ = ["poll_plan", "wait_for_terminal"]

_MARKER = (
    "async_task(task): waits for a task that runs elsewhere. `task` is the name it is measured under, by default "
    "the test's own. Tried once more when it fails; select with -m async_task, leave out with -m 'not async_task'."
)
_PLAN = "polling file to time waits by, and to write the next run's plan to; relative to the root directory (empty: none)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--asyncpoll-plan`, and what a project may set in its ini file."""
    parser.getgroup("asyncpoll").addoption("--asyncpoll-plan", metavar="FILE", help=_PLAN)
    parser.addini("asyncpoll_plan", _PLAN, default="asyncpoll-plan.json")
    parser.addini(
        "asyncpoll_rerun_delay",
        "seconds before a marked test that failed is tried once more",
        default="10",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and, where all reports arrive, the recorder."""
    config.addinivalue_line("markers", _MARKER)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(durations.Recorder(config), "asyncpoll-recorder")


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Let marked tests have another try."""
    reruns.allow(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test has waited for goes with its report, which reaches the controller from any worker."""
    report = yield
    durations.attach(item, report)
    return report
