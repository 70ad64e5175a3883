"""Reporting on a task that other code of the project runs: a pipeline, a cron job, another queue's worker."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from asyncpoll.contract import Status
from tasks_app import conf
from tasks_app.errors import StepRefused
from tasks_app.store import Call, step
from tasks_app.store.driver import run
from tasks_app.store.jsontext import clean_text, to_json
from tasks_app.store.pool import loop_pool


def notify_step_completed(
    task_id: UUID | str,
    status: str = Status.RUNNING,
    result: Any = None,
    *,
    progress: float | None = None,
    message: str | None = None,
    data: dict[str, Any] | None = None,
    error: str = "",
) -> int:
    """Say where a task is that no worker of ours runs, and wake whoever waits for it. Gives the new version.

    `status` is RUNNING, SUCCESS (with `result`), FAILED (with `error`) or CANCELLED; `progress` is a fraction from 0
    to 1. Joins the transaction that is open on Django's connection: waiters wake when it commits. Raises StepRefused
    when the task is over, unknown, or held by a worker; ValueError and NotJson for unfit values.
    """
    return _version(task_id, run(_step(task_id, status, result, progress, message, data, error)))


async def anotify_step_completed(
    task_id: UUID | str,
    status: str = Status.RUNNING,
    result: Any = None,
    *,
    progress: float | None = None,
    message: str | None = None,
    data: dict[str, Any] | None = None,
    error: str = "",
) -> int:
    """`notify_step_completed` from async code, committed on its own."""
    call = _step(task_id, status, result, progress, message, data, error)
    return _version(task_id, await (await loop_pool()).run(call))


def _step(
    task_id: UUID | str,
    status: str,
    result: Any,
    progress: float | None,
    message: str | None,
    data: dict[str, Any] | None,
    error: str,
) -> Call[int | None]:
    known = Status(status)
    if known is Status.PENDING:
        raise ValueError("status is PENDING; a step says RUNNING, SUCCESS, FAILED or CANCELLED.")
    if result is not None and known is not Status.SUCCESS:
        raise ValueError(
            f"result was given with status {known}; only SUCCESS has a result, use data= for the rest."
        )
    return step(
        UUID(str(task_id)),
        known,
        progress=1.0 if known is Status.SUCCESS else check_progress(progress),
        message=None if message is None else clean_text(message),
        data=None if data is None else to_json(data, "data", conf.current().MAX_RESULT_BYTES),
        result=to_json(result, "result", conf.current().MAX_RESULT_BYTES)
        if known is Status.SUCCESS
        else None,
        error_type="Failed" if known is Status.FAILED else "",
        error_message=clean_text(error) if known is Status.FAILED else "",
    )


def check_progress(progress: float | None) -> float | None:
    """`progress` unchanged. Raises ValueError unless it is None or a number from 0 to 1."""
    if progress is not None and not 0 <= progress <= 1:
        raise ValueError(f"progress is {progress!r}; it must be a fraction from 0 to 1.")
    return progress


def _version(task_id: UUID | str, version: int | None) -> int:
    if version is None:
        raise StepRefused(
            f"Task {task_id} takes no step from here: it is over, unknown, or held by a worker. Report from inside a "
            "worker's task with current_task().report()."
        )
    return version
