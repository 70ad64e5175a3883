"""Tasks whose stages are steps."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from tasks_app.context import running
from tasks_app.models import StepRecord
from tasks_app.tasks import Backoff, current_task, step, step_sync, task
from tests.sample_tasks import gates, seen

AT_ONCE = Backoff(base=0)


def double(note: str, numbers: list[int]) -> list[int]:
    """A stage."""
    seen[note].append(("double", current_task().attempt))
    return [2 * number for number in numbers]


async def total(note: str, numbers: list[int]) -> int:
    """A stage that is a coroutine."""
    seen[note].append(("total", current_task().attempt))
    return sum(numbers)


@task(name="steps.fail_between", max_attempts=3, backoff=AT_ONCE)
async def fail_between(note: str) -> int:
    """Fails after its first step, and after its second."""
    doubled = await step("double", double, note, numbers=[1, 2, 3])
    if current_task().attempt == 1:
        raise ConnectionError("between")
    result = await step("total", total, note, doubled)
    if current_task().attempt == 2:
        raise ConnectionError("after")
    return result


@task(name="steps.fail_between_sync", max_attempts=3, backoff=AT_ONCE)
def fail_between_sync(note: str) -> int:
    """The same, as a function."""
    doubled = step_sync("double", double, note, numbers=[1, 2, 3])
    if current_task().attempt == 1:
        raise ConnectionError("between")
    result = step_sync("total", lambda: _noted(note, "total", sum(doubled)))
    if current_task().attempt == 2:
        raise ConnectionError("after")
    return result


def _noted(note: str, name: str, value: Any) -> Any:
    seen[note].append((name, current_task().attempt))
    return value


@task(name="steps.look_up")
def look_up(count: int = 1) -> list[int]:
    """How many records anybody can see, right after each step."""
    visible = []
    for number in range(count):
        step_sync(f"step {number}", lambda: None)
        visible.append(StepRecord.objects.filter(task_id=current_task().id).count())
    return visible


@task(name="steps.at_gate", backoff=AT_ONCE)
async def at_gate(gate: str) -> str:
    """Reports, does a step, and waits."""
    current_task().report(0.25, "said before")
    await step("first", str, "kept")
    while not gates[gate].is_set():
        await asyncio.sleep(0.005)
    return "passed"


@task(name="steps.lose", backoff=AT_ONCE)
async def lose(note: str) -> str:
    """Waits in the step of its first attempt, and notes what the step raised."""
    return await _note_error(note, step("slow", _wait, note, current_task().attempt))


@task(name="steps.lose_sync", backoff=AT_ONCE)
def lose_sync(note: str) -> str:
    """The same, as a function."""
    try:
        return step_sync("slow", _wait, note, current_task().attempt)
    except BaseException as error:
        seen[f"error {note}"].append(error)
        raise


async def _note_error(note: str, taking: Any) -> Any:
    try:
        return await taking
    except BaseException as error:
        seen[f"error {note}"].append(error)
        raise


def _wait(note: str, attempt: int) -> str:
    seen[f"in step {note}"].append(attempt)
    if attempt == 1:
        gates[note].wait(30)
    return f"by attempt {attempt}"


@task(name="steps.unfit", max_attempts=1)
async def unfit(kind: str) -> Any:
    """A step that gives what can't be kept."""
    value = {"nan": float("nan"), "large": "x" * 2_000_000, "object": object()}[kind]
    return await step("odd", lambda: value)


@task(name="steps.twice")
async def twice(note: str) -> list[int]:
    """A step's name is given out again, once the first has ended and while it is being done."""
    first = await step("same", total, note, [1])
    second = await step("same", total, note, [2])
    results = await asyncio.gather(
        *(step("both", total, note, [number]) for number in (3, 4)), return_exceptions=True
    )
    seen[f"results {note}"].extend(results)
    return [first, second]


@task(name="steps.threads", max_attempts=1)
def threads(count: int) -> list[int]:
    """Steps in threads that the task starts, each with its own event loop."""
    task_here, results = current_task(), []

    def work(number: int) -> None:
        async def work_here() -> None:
            results.append(await step(f"number {number}", str, number))

        running.set(task_here)
        asyncio.run(work_here())

    started = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return sorted(int(result) for result in results)


@task(name="steps.stop_between")
def stop_between(note: str) -> str:
    """Goes over items until it is cancelled, and survives the error of any one of them."""
    seen[f"started {note}"].append(current_task().attempt)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            current_task().raise_if_cancelled()
            time.sleep(0.005)
        except Exception:
            seen[note].append("swallowed")
    return "never cancelled"
