"""Tasks of Django's Tasks framework through a real worker: how they run, and how they end."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.errors import TasksError
from tasks_app.store import Lane, Share, jsontext
from tasks_app.store.pool import loop_pool
from tests import framework_tasks
from tests.integration.backend_support import (
    BACKEND,
    run,
)
from tests.support import aeventually
from tests.workers import ended, fetch, working

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("framework_project"),
]


@pytest.mark.parametrize("task", [framework_tasks.echo, framework_tasks.aecho])
async def test_a_plainly_decorated_function_runs(task):
    """In a thread or on the loop; its module needs no registration."""
    async with working():
        result = await run(task, 1, two=[3])
    assert (result.status, result.return_value) == ("SUCCESSFUL", [[1], {"two": [3]}])
    assert result.enqueued_at <= result.started_at == result.last_attempted_at
    assert result.started_at <= result.finished_at
    assert (result.attempts, result.errors, result.is_finished) == (1, [], True)


async def test_a_task_that_returns_nothing_was_successful():
    """None is a value."""
    async with working():
        result = await run(framework_tasks.nothing)
    assert (result.status, result.return_value) == ("SUCCESSFUL", None)


async def test_the_worker_that_ran_a_task_is_named():
    """By the id that it has while it runs."""
    async with working() as worker:
        result = await run(framework_tasks.nothing)
    assert result.worker_ids == [str(worker.id)]


async def test_a_task_runs_on_the_queue_that_it_was_enqueued_on():
    """A worker of another queue leaves it alone."""
    async with working(queues=("reports",)):
        left = await framework_tasks.nothing.aenqueue()
        result = await run(framework_tasks.nothing.using(queue_name="reports"))
        assert result.status == "SUCCESSFUL"
        await left.arefresh()
    assert left.status == "READY"


async def test_a_deferred_task_starts_when_it_is_due():
    """Not before."""
    due = timezone.now() + timedelta(seconds=0.4)
    task = framework_tasks.nothing.using(run_after=due)
    async with working():
        result = await run(task)
    assert result.started_at >= due
    assert result.task == task


async def test_urgent_tasks_run_first():
    """The most important one that is due."""
    low = await framework_tasks.nothing.using(priority=-50).aenqueue()
    high = await framework_tasks.nothing.using(priority=50).aenqueue()
    async with working(concurrency=1):
        for result in (low, high):
            await ended(UUID(result.id))
            await result.arefresh()
    assert high.started_at < low.started_at


async def test_a_failed_task_names_its_exception_and_shows_where_it_was_raised():
    """Without the worker's own frames; once, and not tried again."""
    async with working():
        result = await run(framework_tasks.fail, "broken")
    assert (result.status, result.attempts) == ("FAILED", 1)
    (error,) = result.errors
    assert error.exception_class is ValueError
    assert error.traceback.endswith("ValueError: broken\n")
    assert "raise ValueError(message)" in error.traceback
    assert "tasks_app" not in error.traceback
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


async def test_an_exception_class_of_the_project_can_be_imported_from_the_error():
    """Where its qualified name leads to it; the framework imports no nested classes."""
    async with working():
        result = await run(framework_tasks.afail)
    (error,) = result.errors
    assert error.exception_class_path == "tests.framework_tasks.Refused.ForNow"


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
async def test_a_task_that_tries_to_end_the_process_fails_alone(error):
    """The worker goes on."""
    async with working():
        result = await run(framework_tasks.leave, error.__name__)
        assert (await run(framework_tasks.nothing)).status == "SUCCESSFUL"
    assert result.status == "FAILED"
    assert result.errors[0].exception_class is error


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("function", TypeError, ["Unsupported type", "is not JSON serializable"]),
        ("bytes", ValueError, ["Unsupported value", "is not JSON serializable"]),
        ("nan", ValueError, ["NaN"]),
    ],
)
async def test_a_return_value_that_is_not_json_fails_the_task_at_once(kind, error, words):
    """Trying again would do its work twice for nothing."""
    async with working():
        result = await run(framework_tasks.unfit.using(backend="again"), kind)
    assert (result.status, result.attempts) == ("FAILED", 1)
    assert issubclass(result.errors[0].exception_class, error)
    assert all(word in result.errors[0].traceback for word in words)


async def test_an_end_that_the_database_refuses_is_told_as_the_failure_it_became(ears, monkeypatch):
    """Receivers hear what is stored, not what the function returned."""
    monkeypatch.setattr(jsontext, "_holds_nul", lambda value: False)
    async with working():
        result = await run(framework_tasks.unfit, "nul")
        heard = await ears.finished(result)
    assert result.status == heard.result.status == heard.stored == "FAILED"
    assert "the database refused it" in heard.result.errors[0].traceback
    assert isinstance(heard.error, TasksError)


async def test_a_return_value_becomes_what_json_makes_of_it():
    """As in the framework's own backends."""
    async with working():
        result = await run(framework_tasks.tidy)
    assert result.return_value == {"tuple": [1, 2], "bytes": "text"}


async def test_a_task_that_takes_its_context_gets_it():
    """With the result as it is while the task runs."""
    async with working() as worker:
        result = await run(framework_tasks.who_am_i, attempt=1)
        other = await run(framework_tasks.awho_am_i)
    assert result.return_value == [result.id, "RUNNING", [], 1]
    assert result.worker_ids == [str(worker.id)]
    assert other.return_value == other.id


async def test_a_backend_may_try_again_and_every_attempt_is_counted():
    """With one start each, and one end."""
    async with working():
        result = await run(framework_tasks.fail_until.using(backend="again"), 3)
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", 3, 3)
    assert len(result.worker_ids) == 3
    assert result.started_at < result.last_attempted_at
    assert result.errors == []


async def test_attempts_end_when_there_are_no_more(ears):
    """The error is the last attempt's; only then the task has finished."""
    async with working():
        result = await run(framework_tasks.fail_until.using(backend="again"), 9)
        heard = await ears.finished(result)
    assert (result.status, result.attempts) == ("FAILED", 3)
    assert result.errors[0].exception_class is framework_tasks.Refused
    assert "attempt 3" in result.errors[0].traceback
    assert ears.names(result) == ["started", "started", "started", "finished"]
    assert [entry.result.attempts for entry in ears.of(result)] == [1, 2, 3, 3]
    assert heard.result == result or heard.result.errors == result.errors


async def test_a_waiting_retry_shows_why(settings):
    """READY again, with the error of the attempt that failed."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "RETRY_BASE_SECONDS": 600.0}
    result = await framework_tasks.fail.using(backend="again").aenqueue()
    async with working():
        await aeventually(lambda: _failures(result))
        await result.arefresh()
    assert (result.status, result.attempts, result.is_finished) == ("READY", 1, False)
    assert result.errors[0].exception_class is ValueError


async def _failures(result):
    rows = await fetch("SELECT failures FROM tasks_app_task WHERE id = %s", UUID(result.id))
    return rows[0][0]


@pytest.mark.parametrize("how", ["thread", "loop"])
async def test_a_task_that_exceeds_its_time_has_failed_and_says_so(how, ears):
    """Also where its function can't be stopped and still runs."""
    async with working():
        if how == "thread":
            result = await run(framework_tasks.wait_at.using(backend="brief"), how)
        else:
            result = await run(framework_tasks.sleep.using(backend="brief"), 30)
        heard = await ears.finished(result)
        framework_tasks.gates[how].set()
    framework_tasks.gates.clear()
    assert result.status == "FAILED"
    assert result.errors[0].exception_class is TimeoutError
    assert "exceeded its time limit of 0.3 s" in result.errors[0].traceback
    assert isinstance(heard.error, TimeoutError)
    assert ears.names(result) == ["started", "finished"]


async def test_a_cancelled_task_has_failed_and_says_so(ears):
    """The framework has no status of its own for it."""
    async with working():
        result = await framework_tasks.sleep.aenqueue(30)
        await aeventually(lambda: "started" in ears.names(result))
        await (await loop_pool()).run(store.cancel(UUID(result.id)))
        heard = await ears.finished(result)
        await result.arefresh()
    assert (result.status, result.cancelled) == ("FAILED", True)
    assert result.errors[0].exception_class.__name__ == "Cancelled"
    assert (heard.result.status, type(heard.error).__name__) == ("FAILED", "Cancelled")


async def test_a_worker_that_dies_leaves_an_error_that_can_be_imported(settings):
    """With one attempt the task has failed."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "LEASE_SECONDS": 1.0, "HEARTBEAT_SECONDS": 0.5}
    result = await framework_tasks.nothing.aenqueue()
    dead = UUID(int=7)
    await (await loop_pool()).run(store.claim(dead, [Share(Lane("default", ""), 1)], 0.0))
    async with working():
        await ended(UUID(result.id))
        await result.arefresh()
    assert (result.status, result.worker_ids) == ("FAILED", [str(dead)])
    assert result.errors[0].exception_class.__name__ == "LeaseExpired"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.function", "ModuleNotFoundError"),
        ("tests.framework_tasks.removed", "ImportError"),
        ("subprocess.check_output", "not a task"),
    ],
)
async def test_a_task_whose_function_is_gone_fails_and_nothing_else_runs(name, words, ears):
    """Whatever is imported must be a task."""
    result = await framework_tasks.echo.aenqueue(["exit", "1"])
    await fetch("UPDATE tasks_app_task SET name = %s WHERE id = %s", name, UUID(result.id))
    async with working():
        snapshot = await ended(UUID(result.id))
        assert (await run(framework_tasks.nothing)).status == "SUCCESSFUL"
    assert (snapshot.status, snapshot.error_type) == (Status.FAILED, "UnknownTask")
    ((traceback,),) = await fetch("SELECT traceback FROM tasks_app_task WHERE id = %s", snapshot.id)
    assert words in traceback
    assert ears.names(result) == []


async def test_a_worker_without_the_backend_says_what_is_missing(settings):
    """Workers need the TASKS of whoever enqueues."""
    result = await framework_tasks.nothing.using(backend="again").aenqueue()
    settings.TASKS = {"default": {"BACKEND": BACKEND}}
    async with working():
        snapshot = await ended(UUID(result.id))
    assert snapshot.error_type == "UnknownTask"
    assert "TASKS['again']" in snapshot.error_message


async def test_progress_and_version_ride_on_the_result():
    """What whoever waits over HTTP sees."""
    async with working():
        result = await framework_tasks.report.aenqueue("half")

        async def is_half() -> bool:
            await result.arefresh()
            return result.progress == 0.5

        await aeventually(is_half)
        assert (result.status, result.message, result.version) == ("RUNNING", "half", 3)
        framework_tasks.gates["half"].set()
        await ended(UUID(result.id))
    framework_tasks.gates.clear()
    await result.arefresh()
    assert (result.status, result.progress, result.version) == ("SUCCESSFUL", 1.0, 4)


async def test_a_task_can_enqueue_another():
    """From a thread of the worker's, on Django's connection."""
    async with working():
        result = await run(framework_tasks.enqueue_another)
        assert (await ended(UUID(result.return_value))).status is Status.SUCCESS


async def test_a_task_that_is_run_again_is_one_of_the_framework_too():
    """As the admin's button does it."""
    new_id = UUID(int=12345)
    async with working():
        result = await run(framework_tasks.echo, 1)
        await (await loop_pool()).run(store.run_again(UUID(result.id), new_id))
        await ended(new_id)
    again = await framework_tasks.echo.aget_result(str(new_id))
    assert (again.return_value, again.task) == (result.return_value, result.task)
