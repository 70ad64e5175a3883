"""`step` and `step_sync`: what they call, keep, give and refuse."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tasks_app.context import running
from tasks_app.errors import LeaseLost, NotJson, StepRefused
from tasks_app.stages import step, step_sync
from tasks_app.tasks import task
from tests.unit.fakes import FakeBook


@pytest.fixture
def book() -> Iterator[FakeBook]:
    """Where the steps of the test's own code are kept."""
    book = FakeBook()
    token = running.set(SimpleNamespace(steps=book))  # type: ignore[arg-type]
    yield book
    running.reset(token)


async def aadd(a: int, b: int = 1) -> int:
    return a + b


def add(a: int, b: int = 1) -> int:
    return a + b


@task(name="stages.declared")
async def declared(a: int) -> int:
    """A task that is a stage of another."""
    return a + 1


@pytest.mark.parametrize(
    "func",
    [aadd, add, partial(aadd, b=1), lambda a: aadd(a), declared],
    ids=["async", "sync", "partial", "lambda", "task"],
)
async def test_coroutine_functions_and_functions_and_what_wraps_them_are_called(book, func):
    """However they show what they are."""
    assert await step("sum", func, 2) == 3
    assert book.kept == {"sum": "3"}


async def test_a_function_is_called_in_a_thread_and_still_belongs_to_its_task(book):
    """It would block the loop."""

    def here() -> bool:
        return running.get().steps is book and threading.current_thread() is not loop_thread

    loop_thread = threading.current_thread()
    assert await step("thread", here)


def test_a_step_that_was_recorded_is_not_called(book):
    """Not even when what it gave was nothing."""
    book.kept = {"done": "null"}
    assert step_sync("done", pytest.fail, "called") is None


def test_what_comes_back_has_gone_through_json_also_the_first_time(book):
    """So that a task can't come to depend on what its second attempt will not get."""
    value: Any = {"pair": (1, 2), 3: None}
    assert step_sync("a", lambda: value) == {"pair": [1, 2], "3": None}
    assert step_sync("a", lambda: value) == {"pair": [1, 2], "3": None}


def test_what_the_function_raises_is_raised_and_nothing_is_recorded(book):
    """The step may be tried again at once."""
    with pytest.raises(ZeroDivisionError):
        step_sync("risky", lambda: 1 / 0)
    assert book.kept == {}
    assert step_sync("risky", lambda: 1) == 1


def test_an_unfit_result_is_refused_with_the_name_of_the_step(book, settings):
    """And nothing is recorded."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "MAX_RESULT_BYTES": 10}
    with pytest.raises(NotJson, match="The result of step 'odd' is not JSON"):
        step_sync("odd", object)
    with pytest.raises(NotJson, match="The result of step 'big' is 13 bytes of JSON; the limit"):
        step_sync("big", lambda: "x" * 11)
    assert book.kept == {}


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x00b", "a\nb", "\ud800", None])
async def test_a_name_that_can_not_be_kept_is_refused_with_the_rule(book, name):
    """Before anything is called."""
    with pytest.raises(ValueError, match="its name is 1 to 200 printable characters"):
        await step(name, pytest.fail, "called")


async def test_two_steps_of_one_name_at_once_are_refused_and_one_within_the_other(book):
    """Which of the two results would the name stand for?"""
    started = asyncio.Event()

    async def outer() -> int:
        started.set()
        with pytest.raises(StepRefused, match="begun while it is being done"):
            await step("same", aadd, 1)
        return await step("other", aadd, 1)

    assert await step("same", outer) == 2
    assert book.kept == {"other": "2", "same": "2"}


async def test_an_error_of_the_book_ends_the_step(book, monkeypatch):
    """The result is not given as if it were recorded."""

    def lost(name: str, result: str) -> Any:
        raise LeaseLost("gone")

    monkeypatch.setattr(book, "record", lost)
    with pytest.raises(LeaseLost):
        await step("a", aadd, 1)


async def test_a_step_can_be_taken_again_after_it_was_cancelled(book):
    """Its name is free then."""
    task = asyncio.create_task(step("slow", asyncio.sleep, 60))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await step("slow", asyncio.sleep, 0, 5) == 5
