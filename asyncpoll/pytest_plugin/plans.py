"""The polling file of a test suite: read for this run, written for the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from asyncpoll.planfile import PlanFile, TaskPlan

_FILE = pytest.StashKey["PlanFile"]()


def path(config: pytest.Config) -> Path | None:
    """Where the file is, whether it exists or not; None if the project wants none."""
    asked = config.getoption("asyncpoll_plan")
    name = config.getini("asyncpoll_plan") if asked is None else asked
    return config.rootpath / name if name else None


def of(config: pytest.Config, task: str) -> TaskPlan:
    """The plan for `task` in this run; without a file, or if it does not name the task, one that knows of no sample.

    Fails the test that asks if the file can't be read.
    """
    from asyncpoll.planfile import PlanFileError, TaskPlan

    broken = ""
    try:
        plan = _file(config).for_task(task) or TaskPlan(task=task, samples=0)
    except PlanFileError as error:
        broken = f"{error} Or delete it: then this run is the first."
    if broken:
        # Not above, where pytest would show the error and then what it has led to, in the same words.
        pytest.fail(broken, pytrace=False)
    return replace(plan, timeout_seconds=plan.ci_timeout_seconds or plan.timeout_seconds)


def is_usable(config: pytest.Config) -> bool:
    """False if there is a file and it can't be read: no other try of a test changes that."""
    from asyncpoll.planfile import PlanFileError

    try:
        _file(config)
    except PlanFileError:
        return False
    return True


def update(config: pytest.Config, durations_ms: Mapping[str, Sequence[float]]) -> list[str]:
    """Write the next run's plan for what was measured, keeping what was not, and give what there is to say."""
    from asyncpoll.planfile import PlanFile, PlanFileError, write
    from asyncpoll.pytest_plugin.next_run import next_plan
    from asyncpoll.pytest_plugin.turns import turn

    if (target := path(config)) is None:
        return []
    try:
        with turn(target.parent):
            # As it is now: another run may have ended while this one went on.
            plans = {plan.task: plan for plan in _read(target).plans}
            for task, measured in durations_ms.items():
                plans[task] = next_plan(task, measured, plans.get(task))
            write(target, PlanFile(datetime.now(UTC), tuple(plans[task] for task in sorted(plans))))
    except PlanFileError as error:
        return [f"No plan for the next run: {error}"]
    return [
        f"The next run's plan is in {target}:",
        *(_line(plans[task]) for task in sorted(durations_ms)),
    ]


def _line(plan: TaskPlan) -> str:
    notes = "".join(f" ({note})" for note in plan.notes)
    return f"  {plan.task}: {plan.samples} measured, up to {plan.ci_timeout_seconds:g} s{notes}"


def _file(config: pytest.Config) -> PlanFile:
    if _FILE not in config.stash:
        config.stash[_FILE] = _read(path(config))
    return config.stash[_FILE]


def _read(source: Path | None) -> PlanFile:
    from asyncpoll.planfile import PlanFile, read

    if source is None or not source.exists():
        return PlanFile(datetime.now(UTC), ())
    return read(source)
