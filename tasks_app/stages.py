"""`step`: a stage of a task whose result survives the attempt that did it."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar, overload

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation

from tasks_app import conf
from tasks_app.context import current_task
from tasks_app.store.jsontext import to_json

P = ParamSpec("P")
R = TypeVar("R")


@overload
async def step(
    name: str, func: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
) -> R: ...
@overload
async def step(name: str, func: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
async def step(name: str, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call `func`, record what it gives and give that; where it was recorded before, give it without calling `func`.

    `func` is a coroutine function, or a function, which then runs in the attempt's own thread. When this returns the
    result is committed: whatever happens to the worker, no later attempt does the step again. Whoever waits for the
    task sees a milestone of the kind "step".

    - `name` stands for the result within the task: the second call with a name, in this attempt or in a later one,
      gives what the first recorded, whatever its arguments. Two steps that differ have two names. Give a step another
      name when a new release changes what its result means: tasks that began before keep what they have.
    - The result is JSON of at most MAX_RESULT_BYTES, and comes back as JSON also the first time: a tuple as a list,
      a key that was a number as text, keys in any order.
    - An attempt may die after `func` returned and before the result is committed. Then `func` runs again: what it
      does elsewhere has to bear that.
    - `run_again` makes a new task, which does every step itself.

    Raises what `func` raises (nothing is recorded then), NotJson for a result that can't be stored, LeaseLost when
    this attempt does not hold its task any more (more often the coroutine is cancelled at once), StepRefused when a
    step of that name is being done at this moment, ValueError for an unfit name, NoCurrentTask outside a task.
    """
    book = current_task().steps
    with book.taking(name):
        recorded = await asyncio.wrap_future(book.find(name))
        if recorded is None:
            recorded = _checked(name, await _acall(func, *args, **kwargs))
            await asyncio.wrap_future(book.record(name, recorded))
    return json.loads(recorded)


def step_sync(name: str, func: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """`step` for tasks that are plain functions: `step_sync("clean", clean, documents)`.

    Promises and raises the same; and SynchronousOnlyOperation in a coroutine, whose event loop it would block.
    """
    _refuse_in_coroutine(name)
    book = current_task().steps
    with book.taking(name):
        recorded = book.find(name).result()
        if recorded is None:
            recorded = _checked(name, func(*args, **kwargs))
            book.record(name, recorded).result()
    result: R = json.loads(recorded)
    return result


def _checked(name: str, value: Any) -> str:
    return to_json(value, f"The result of step {name!r}", conf.current().MAX_RESULT_BYTES)


async def _acall(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if inspect.iscoroutinefunction(func):
        return await func(*args, **kwargs)
    value = await sync_to_async(func)(*args, **kwargs)
    # A partial or a lambda does not show that what it calls is a coroutine function.
    return await value if inspect.isawaitable(value) else value


def _refuse_in_coroutine(name: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise SynchronousOnlyOperation(
        f"step_sync({name!r}, …) was called in a coroutine; write `await step({name!r}, …)`."
    )
