"""What a worker tells the receivers of the framework's signals, and its logger."""

from __future__ import annotations

import logging
import threading
from uuid import UUID

import django
import pytest

from tasks_app.backend import TasksBackend
from tasks_app.compat import task_finished, task_started
from tests import framework_tasks
from tests.integration.backend_support import (
    NAMES,
    receiving,
    run,
)
from tests.support import aeventually
from tests.workers import ended, working

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("framework_project"),
]
LOGGER = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"


@pytest.mark.parametrize("task", [framework_tasks.echo, framework_tasks.aecho])
async def test_signals_tell_of_a_success(task, ears):
    """Each once, in order, from the backend's class, the end once everybody can see it."""
    async with working():
        result = await run(task, 1)
        heard = await ears.finished(result)
    assert ears.names(result) == ["started", "finished"]
    assert {entry.sender for entry in ears.of(result)} == {TasksBackend}
    started = ears.of(result)[0].result
    assert (started.status, started.attempts, started.args) == ("RUNNING", 1, [1])
    assert started.started_at == result.started_at
    assert (heard.result.status, heard.stored, heard.error) == ("SUCCESSFUL", "SUCCESSFUL", None)
    assert heard.result.return_value == result.return_value
    assert heard.result.version == result.version
    assert heard.result.started_at <= heard.result.finished_at


@pytest.mark.parametrize(
    ("task", "error"),
    [
        (framework_tasks.fail, ValueError),
        (framework_tasks.afail, framework_tasks.Refused.ForNow),
    ],
)
async def test_receivers_of_a_failure_find_the_error_that_is_being_handled(task, error, ears):
    """So that error monitoring works in them: the exception itself, with its own traceback."""
    async with working():
        result = await run(task, "broken")
        heard = await ears.finished(result)
    assert ears.names(result) == ["started", "finished"]
    assert (heard.result.status, heard.stored) == ("FAILED", "FAILED")
    assert type(heard.error) is error
    assert str(heard.error) == "broken"
    assert heard.result.errors == result.errors
    frames = []
    trace = heard.error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    assert frames == [task.func.__name__]


async def test_a_failure_is_logged_with_its_traceback(caplog):
    """By the framework's own receivers, which log what is being handled."""
    caplog.set_level(logging.INFO, LOGGER)
    async with working():
        result = await run(framework_tasks.fail, "broken")
        await aeventually(lambda: "state=FAILED" in caplog.text)
    lines = [record for record in caplog.records if record.name == LOGGER]
    assert all(result.id in record.getMessage() for record in lines)
    assert "state=RUNNING" in lines[0].getMessage()
    assert (lines[1].levelno, lines[1].exc_info[0]) == (logging.ERROR, ValueError)


async def test_a_success_is_logged_without_an_error(caplog):
    """No trace of NoneType."""
    caplog.set_level(logging.DEBUG, LOGGER)
    async with working():
        await run(framework_tasks.nothing)
        await aeventually(lambda: "state=SUCCESSFUL" in caplog.text)
    assert "NoneType" not in caplog.text


@pytest.mark.parametrize("task", [framework_tasks.nothing, framework_tasks.aecho])
@pytest.mark.parametrize("signal", [task_started, task_finished])
async def test_a_receiver_that_raises_does_not_change_what_became_of_the_task(task, signal, ears):
    """Its error is logged, and the next receiver is called."""

    def broken(sender, **kwargs):
        raise RuntimeError("a bug in a receiver")

    with receiving(broken, signal):
        async with working():
            result = await run(task)
            await ears.finished(result)
    assert (result.status, result.attempts) == ("SUCCESSFUL", 1)


@pytest.mark.parametrize("task", [framework_tasks.nothing, framework_tasks.aecho])
async def test_coroutines_can_be_receivers(task):
    """As Django allows."""
    seen = []

    async def receive(signal, task_result, **kwargs):
        seen.append(NAMES[signal])

    with receiving(receive, *NAMES):
        async with working():
            await run(task)
            await aeventually(lambda: "finished" in seen)
    assert seen == ["started", "finished"]


async def test_a_slow_receiver_keeps_the_slot_of_its_task():
    """So that the ends which are still to be told can't pile up."""
    gate, entered = threading.Event(), threading.Event()

    def slow(sender, **kwargs):
        entered.set()
        gate.wait(20)

    with receiving(slow, task_finished):
        async with working(concurrency=1) as worker:
            await run(framework_tasks.nothing)
            await aeventually(entered.is_set)
            second = await framework_tasks.nothing.aenqueue()
            assert (worker.held.running, worker.held.free) == (1, 0)
            gate.set()
            await ended(UUID(second.id))


async def test_a_worker_that_stops_tells_of_what_it_finished(ears):
    """The grace is for that, too."""
    result = await framework_tasks.wait_at.aenqueue("stop")
    async with working(grace_seconds=20.0) as worker:
        await aeventually(lambda: worker.held.running == 1)
        framework_tasks.gates["stop"].set()
    framework_tasks.gates.clear()
    assert ears.names(result) == ["started", "finished"]
