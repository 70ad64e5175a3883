"""One wait, by either client, as a plan says. Imported by the first test that waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from asyncpoll.client import AsyncClient, Client, await_for_terminal, wait_for_terminal
from asyncpoll.planfile import TaskPlan

_RHYTHM = {"interval", "max_interval", "growth", "plan"}


def end_of(
    client: Any, target: Any, plan: TaskPlan, timeout: float | None, options: Mapping[str, Any]
) -> Any:
    """The end of the task, or an awaitable of it where `client` is for asyncio."""
    patience = timeout or plan.timeout_seconds
    if isinstance(client, Client | AsyncClient):
        return client.wait(target, lifetime=patience, **options)
    wait = await_for_terminal if isinstance(client, httpx.AsyncClient) else wait_for_terminal
    return wait(client, target, **{**_planned(plan, patience, options), **options})


def _planned(plan: TaskPlan, patience: float | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """A rhythm that the caller chose, or that nothing is known of, is not the plan's."""
    if plan.first_interval_seconds is None or _RHYTHM & options.keys():
        return {} if patience is None else {"timeout": patience}
    return {"plan": replace(plan, timeout_seconds=patience)}
