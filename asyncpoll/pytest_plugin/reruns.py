"""One more try for marked tests, through pytest-rerunfailures."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from asyncpoll.pytest_plugin import plans


def marked(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Those of `items` that wait for a task that runs elsewhere."""
    return [item for item in items if item.get_closest_marker("async_task")]


def allow(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """Have each marked test of `items` tried once more, unless it or the whole run says how often."""
    if not _is_there(config) or _is_chosen(config):
        return
    delay = delay_seconds(config)
    waiting = marked(items)
    if waiting and not plans.is_usable(config):
        return
    for item in waiting:
        if not item.get_closest_marker("flaky"):
            item.add_marker(pytest.mark.flaky(reruns=1, reruns_delay=delay))


def is_missing(config: pytest.Config) -> bool:
    """True if pytest-rerunfailures is not installed; one that is switched off is not missed."""
    return not _is_there(config) and not config.pluginmanager.is_blocked("rerunfailures")


def delay_seconds(config: pytest.Config) -> float:
    """The pause before the other try: as this run was told, or else the ini file. Raises pytest.UsageError if that has
    something else than a number."""
    if (told := config.getoption("reruns_delay")) is not None:
        return float(told)
    text = config.getini("asyncpoll_rerun_delay")
    try:
        delay = float(text)
    except ValueError:
        delay = -1.0
    if not 0 <= delay <= 3600:
        raise pytest.UsageError(
            f"asyncpoll_rerun_delay is {text!r}; it must be a number of seconds from 0 to 3600."
        )
    return delay


def _is_there(config: pytest.Config) -> bool:
    # By its option: its name depends on how it was loaded.
    return hasattr(config.option, "reruns")


def _is_chosen(config: pytest.Config) -> bool:
    # A marker would have priority over what was asked for the whole run; a debugger wants the first failure.
    asked = config.getoption("reruns") is not None or bool(config.getini("reruns"))
    return asked or bool(config.getoption("usepdb"))
