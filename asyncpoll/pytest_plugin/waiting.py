"""One wait, by either client, as a plan says, and measured."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import Any

import httpx
import pytest

from asyncpoll.client import AsyncClient, Client, await_for_terminal, wait_for_terminal
from asyncpoll.client.clock import is_testing
from asyncpoll.planfile import TaskPlan
from asyncpoll.pytest_plugin import durations

_RHYTHM = {"interval", "max_interval", "growth", "plan"}
_ENDED_BADLY = {"FAILED", "CANCELLED"}


def waited(
    item: pytest.Item,
    plan: TaskPlan,
    client: Any,
    target: Any,
    timeout: float | None,
    options: Mapping[str, Any],
) -> Any:
    """The end of the task, or an awaitable of it where `client` is for asyncio. `item` is measured by it."""
    stopwatch = _Stopwatch(item, plan.task, time.perf_counter())
    ended = _end(client, target, plan, timeout or plan.timeout_seconds, options)
    return stopwatch.awaited(ended) if isawaitable(ended) else stopwatch.stopped(ended)


def _end(
    client: Any, target: Any, plan: TaskPlan, patience: float | None, options: Mapping[str, Any]
) -> Any:
    if isinstance(client, Client | AsyncClient):
        return client.wait(target, lifetime=patience, **options)
    wait = await_for_terminal if isinstance(client, httpx.AsyncClient) else wait_for_terminal
    return wait(client, target, **{**_planned(plan, patience, options), **options})


def _planned(plan: TaskPlan, patience: float | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """A rhythm that the caller chose, or that nothing is known of, is not the plan's."""
    if plan.first_interval_seconds is None or _RHYTHM & options.keys():
        return {} if patience is None else {"timeout": patience}
    return {"plan": replace(plan, timeout_seconds=patience)}


@dataclass(frozen=True, slots=True)
class _Stopwatch:
    item: pytest.Item
    task: str
    began: float

    def stopped(self, ended: Any) -> Any:
        """Note the duration if the task ended well and in real time; gives what it is given."""
        if str(_status(ended)).upper() not in _ENDED_BADLY and not is_testing():
            durations.note(self.item, self.task, (time.perf_counter() - self.began) * 1000)
        return ended

    async def awaited(self, ended: Awaitable[Any]) -> Any:
        """The same once it has ended."""
        return self.stopped(await ended)


def _status(ended: Any) -> object:
    if hasattr(ended, "status"):
        return ended.status
    return ended.get("status", ended.get("state"))
