"""What a test asks for: the plan for its task, and a wait that goes by it and is measured."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import pytest

from asyncpoll.pytest_plugin import durations, plans

if TYPE_CHECKING:
    from asyncpoll.planfile import TaskPlan


@pytest.fixture
def poll_plan(request: pytest.FixtureRequest) -> TaskPlan:
    """How to wait for the task that the test is marked with: `PollPolicy.from_plan(poll_plan)`.

    Where nothing was measured yet its `samples` are 0, and every default applies.
    """
    return plans.of(request.config, task_of(request.node))


@pytest.fixture
def wait_for_terminal(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`wait_for_terminal(client, target)`: wait for a task's end as the last run's plan says, and be measured.

    `client` is httpx's, and `target` the URL of an endpoint that tells the task's status; or it is asyncpoll's, and
    `target` the id of a task. An async client's end has to be awaited. `task` names what is measured, by default what
    the marker says; `timeout` overrides the plan's. More options are those of `asyncpoll.client.wait_for_terminal`, or
    of `Client.wait`. A wait that ends in FAILED or CANCELLED gives that and is not measured.
    """

    def wait(
        client: Any,
        target: Any,
        *,
        task: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        from asyncpoll.pytest_plugin.waiting import end_of

        name = task or task_of(request.node)
        stopwatch = _Stopwatch(request.node, name, time.perf_counter())
        ended = end_of(client, target, plans.of(request.config, name), timeout, options)
        return stopwatch.awaited(ended) if isawaitable(ended) else stopwatch.stopped(ended)

    return wait


def task_of(item: pytest.Item) -> str:
    """The name under which `item` is measured: what its marker says, or its own without parameters."""
    marker = item.get_closest_marker("async_task")
    if marker and marker.args:
        return str(marker.args[0])
    return item.nodeid.partition("[")[0]


@dataclass(frozen=True, slots=True)
class _Stopwatch:
    """Measures one wait."""

    item: pytest.Item
    task: str
    began: float

    def stopped(self, ended: Any) -> Any:
        """Note the duration if the task ended well; gives what it is given."""
        if str(_status(ended)).upper() not in ("FAILED", "CANCELLED"):
            durations.note(self.item, self.task, (time.perf_counter() - self.began) * 1000)
        return ended

    async def awaited(self, ended: Awaitable[Any]) -> Any:
        """The same once it has ended."""
        return self.stopped(await ended)


def _status(ended: Any) -> object:
    if hasattr(ended, "status"):
        return ended.status
    return ended.get("status", ended.get("state"))
