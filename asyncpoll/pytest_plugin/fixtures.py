"""What a test asks for: the plan for its task, and a wait that goes by it and is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from asyncpoll.pytest_plugin import plans

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
    of `Client.wait`. A wait that ends in FAILED or CANCELLED gives that and is not measured, nor
    is any within `set_testing`.
    """

    def wait(
        client: Any,
        target: Any,
        *,
        task: str | None = None,
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        # The first test that waits imports httpx, and no other.
        from asyncpoll.pytest_plugin.waiting import waited

        plan = plans.of(request.config, task or task_of(request.node))
        return waited(request.node, plan, client, target, timeout, options)

    return wait


def task_of(item: pytest.Item) -> str:
    """The name under which `item` is measured: what its marker says, or its own without parameters."""
    marker = item.get_closest_marker("async_task")
    named = (*marker.args, *marker.kwargs.values()) if marker else ()
    if not named:
        return item.nodeid.partition("[")[0]
    if not isinstance(named[0], str) or not named[0]:
        pytest.fail(f"async_task is marked with {named[0]!r}; give the task's name.", pytrace=False)
    return named[0]
