"""Enqueueing through Django's Tasks framework, and asking for results."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import threading
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from asyncpoll.contract import Status
from tasks_app import store
from tasks_app.backend import TasksBackend
from tasks_app.compat import (
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
)
from tasks_app.models import Task
from tasks_app.results import TrackedResult
from tasks_app.store.driver import run
from tasks_app.store.pool import close_loop_pool
from tests import framework_tasks, sample_tasks
from tests.integration.claiming import claim_now
from tests.workers import fetch

pytestmark = pytest.mark.django_db(transaction=True)
BACKEND = "tasks_app.backend.TasksBackend"
TASKS = {
    "default": {"BACKEND": BACKEND, "QUEUES": ["default", "reports"]},
    "shop": {
        "BACKEND": BACKEND,
        "OPTIONS": {"owner": "shop", "max_attempts": 4, "timeout": 2.5},
    },
}


@pytest.fixture(autouse=True)
def tasks(settings):
    """TASKS with two backends of ours."""
    settings.TASKS = TASKS


@pytest.fixture
async def pool_closed():
    """The loop's connections are given back."""
    yield
    await close_loop_pool()


@pytest.fixture
def said():
    """The task_enqueued signals of a test: sender, and a copy of the result as it was then."""
    seen = []

    def receive(sender, task_result, **kwargs):
        seen.append((sender, copy.deepcopy(task_result)))

    task_enqueued.connect(receive)
    yield seen
    task_enqueued.disconnect(receive)


def is_fresh(result, task, args, kwargs):
    """Nothing has happened to it yet."""
    assert isinstance(result, TrackedResult)
    assert UUID(result.id).version == 7
    assert (result.task, result.args, result.kwargs) == (task, args, kwargs)
    assert (result.status, result.is_finished) == (TaskResultStatus.READY, False)
    assert result.enqueued_at is not None
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    assert (result.attempts, result.worker_ids, result.errors) == (0, [], [])
    assert (result.version, result.progress, result.message, result.cancelled) == (
        1,
        None,
        "",
        False,
    )
    with pytest.raises(ValueError, match="Task has not finished yet"):
        _ = result.return_value


@pytest.mark.parametrize("task", [framework_tasks.echo, framework_tasks.aecho])
def test_an_enqueued_task_is_one_row_and_one_statement(task, said, django_assert_num_queries):
    """And one signal, from the backend's class."""
    with django_assert_num_queries(1):
        result = task.enqueue(1, two=3)
    is_fresh(result, task, [1], {"two": 3})
    assert said == [(TasksBackend, result)]
    row = Task.objects.get()
    assert (str(row.id), row.name, row.queue) == (result.id, task.module_path, "default")
    assert (row.owner, row.max_attempts, row.backend) == ("", 1, "default")


@pytest.mark.parametrize("task", [framework_tasks.echo, framework_tasks.aecho])
async def test_an_async_enqueue_does_the_same(task, said, pool_closed):
    """Natively, without a thread for the database."""
    result = await task.aenqueue(1, two=3)
    is_fresh(result, task, [1], {"two": 3})
    assert said == [(TasksBackend, result)]


def test_a_result_that_is_asked_for_equals_the_one_that_enqueueing_gave(
    django_assert_num_queries,
):
    """In one statement, whatever the call was: arguments become what JSON makes of them on both sides."""
    due = timezone.now() + timedelta(hours=3)
    calls = [
        (framework_tasks.echo, (), {}),
        (framework_tasks.echo, ((1, 2), {3: b"four"}), {"x": 1.5}),
        (framework_tasks.echo.using(priority=-7, queue_name="reports"), (), {}),
        (framework_tasks.echo.using(run_after=due), (), {}),
        (framework_tasks.echo.using(run_after=timezone.now() - timedelta(hours=3)), (), {}),
        (framework_tasks.echo.using(backend="shop"), (), {}),
    ]
    for task, args, kwargs in calls:
        result = task.enqueue(*args, **kwargs)
        with django_assert_num_queries(1):
            again = task.get_result(result.id)
        assert again == result
        assert task_backends["default"].get_result(result.id) == result


async def test_an_async_result_equals_the_one_that_enqueueing_gave(pool_closed):
    """Also where the database speaks in another zone."""
    due = datetime(2199, 7, 1, 12, tzinfo=UTC)
    for task in (framework_tasks.echo, framework_tasks.echo.using(run_after=due)):
        result = await task.aenqueue(1)
        assert await task.aget_result(result.id) == result
        assert (await task_backends["default"].aget_result(result.id)).task == task


def test_an_event_loop_that_ends_right_after_an_enqueue_is_not_held_up():
    """The loop's pool is still connecting then. Scripts do that, and so does async_to_sync in a view."""
    ids = {asyncio.run(framework_tasks.echo.aenqueue(number)).id for number in range(20)}
    assert len(ids) == Task.objects.count() == 20


def test_the_options_of_a_backend_are_those_of_its_tasks():
    """Owner, attempts, and seconds per attempt."""
    result = framework_tasks.echo.using(backend="shop").enqueue()
    row = Task.objects.get(id=result.id)
    assert (row.owner, row.max_attempts, row.timeout_seconds) == ("shop", 4, 2.5)
    assert (row.backend, result.backend) == ("shop", "shop")


def test_priority_and_time_are_those_of_the_task():
    """As every other task of ours has them."""
    due = timezone.now() + timedelta(hours=1)
    result = framework_tasks.echo.using(priority=100, run_after=due).enqueue()
    row = Task.objects.get(id=result.id)
    assert (row.priority, row.run_at, row.ready) == (100, due, False)


@override_settings(USE_TZ=False)
def test_without_time_zones_all_times_are_naive():
    """What is stored is the same moment."""
    due = datetime.now() + timedelta(hours=1)
    result = framework_tasks.echo.using(run_after=due).enqueue()
    assert timezone.is_naive(result.enqueued_at)
    assert result.task.run_after == due
    assert framework_tasks.echo.get_result(result.id) == result
    with override_settings(USE_TZ=True):
        stored = framework_tasks.echo.get_result(result.id).task.run_after
        assert abs(stored - timezone.now() - timedelta(hours=1)) < timedelta(minutes=1)


def test_a_task_is_enqueued_inside_the_callers_transaction():
    """Nobody else sees it before the commit, and nobody at all after a rollback."""
    with transaction.atomic():
        result = framework_tasks.echo.enqueue()
        assert result.enqueued_at is not None
        assert Task.objects.count() == 1
        assert seen_by_others() == 0
    assert seen_by_others() == 1
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        framework_tasks.echo.enqueue()
        raise ZeroDivisionError
    assert seen_by_others() == 1


def seen_by_others() -> int:
    """How many tasks another connection sees."""
    counts = []

    def look():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM tasks_app_task")
            counts.append(cursor.fetchone()[0])
        connection.close()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return counts[0]


UNKNOWN = ["123", "", "x" * 5000, "a\x00b", "\ud800", str(uuid4()), 123, None, b"123", ["x"]]


@pytest.mark.parametrize("result_id", UNKNOWN, ids=lambda _: "id")
def test_unknown_and_malformed_ids_cant_be_told_apart(result_id):
    """Both do not exist."""
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(result_id)
    with pytest.raises(TaskResultDoesNotExist):
        framework_tasks.echo.get_result(result_id)


@pytest.mark.parametrize("result_id", UNKNOWN, ids=lambda _: "id")
async def test_unknown_and_malformed_ids_do_not_exist_for_async_code_either(result_id, pool_closed):
    """Both do not exist."""
    with pytest.raises(TaskResultDoesNotExist):
        await task_backends["default"].aget_result(result_id)
    with pytest.raises(TaskResultDoesNotExist):
        await framework_tasks.echo.aget_result(result_id)


def test_an_id_has_one_spelling():
    """Python would read others as well."""
    result = framework_tasks.echo.enqueue()
    for spelling in (UUID(result.id).hex, f"{{{result.id}}}", UUID(result.id).urn):
        with pytest.raises(TaskResultDoesNotExist):
            framework_tasks.echo.get_result(spelling)


def test_a_task_that_was_not_enqueued_through_the_framework_is_no_result_of_it():
    """It has no function that the framework knows."""
    handle = sample_tasks.add.enqueue(1)
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(str(handle.id))


def test_a_result_of_another_task_does_not_match():
    """As the framework has it."""
    result = framework_tasks.echo.enqueue()
    with pytest.raises(TaskResultMismatch, match="Task does not match"):
        framework_tasks.aecho.get_result(result.id)


async def test_a_result_of_another_task_does_not_match_for_async_code_either(pool_closed):
    """As the framework has it."""
    result = await framework_tasks.echo.aenqueue()
    with pytest.raises(TaskResultMismatch, match="Task does not match"):
        await framework_tasks.aecho.aget_result(result.id)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.module", "can't be imported here"),
        ("tests.framework_tasks.removed", "can't be imported here"),
        ("tests.framework_tasks.not_a_task", "is str, not a task"),
        ("subprocess.check_output", "is function, not a task"),
    ],
)
def test_a_result_whose_function_is_gone_says_so(name, reason):
    """It was renamed or removed after the task was enqueued."""
    result = framework_tasks.echo.enqueue()
    Task.objects.filter(id=result.id).update(name=name)
    with pytest.raises(TaskResultMismatch, match=reason) as refusal:
        framework_tasks.echo.get_result(result.id)
    assert name in str(refusal.value)
    assert result.id in str(refusal.value)


def test_settings_that_changed_do_not_hide_results():
    """A queue that is no longer listed was valid when the task was enqueued."""
    result = framework_tasks.echo.using(queue_name="reports").enqueue()
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, "QUEUES": ["default"]}}):
        assert framework_tasks.echo.get_result(result.id) == result


def test_refreshing_reads_everything_again(django_assert_num_queries):
    """In one statement, what is ours included; and changes nothing where nothing changed."""
    result = framework_tasks.echo.enqueue()
    before = dataclasses.asdict(result)
    result.refresh()
    assert dataclasses.asdict(result) == before
    finish(result.id, "[1]")
    assert result.status == TaskResultStatus.READY
    with django_assert_num_queries(1):
        result.refresh()
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", [1], 1)
    assert (result.version, result.progress) == (3, 1.0)
    assert result.enqueued_at <= result.started_at == result.last_attempted_at
    assert result.started_at <= result.finished_at


async def test_refreshing_works_for_async_code(pool_closed):
    """The same facts."""
    result = await framework_tasks.echo.aenqueue()
    await fetch(
        "UPDATE tasks_app_task SET status = 'SUCCESS', ready = false, version = 2, result = '5', "
        "finished_at = now() WHERE id = %s",
        UUID(result.id),
    )
    await result.arefresh()
    assert (result.status, result.return_value, result.version) == ("SUCCESSFUL", 5, 2)


def finish(task_id: str, result: str) -> None:
    """Run it as a worker would."""
    worker = uuid4()
    (claimed,) = claim_now(worker=worker)
    assert str(claimed.id) == task_id
    milestone = store.Milestone("succeeded", 1.0)
    change = store.Change(claimed.id, 1, Status.SUCCESS, (milestone,), result=result)
    assert run(store.commit(worker, [change]))


def test_a_cancelled_task_failed_for_a_reason_that_says_so():
    """The framework has no status of its own for it."""
    result = framework_tasks.echo.enqueue()
    run(store.cancel(UUID(result.id)))
    result.refresh()
    assert (result.status, result.cancelled, result.is_finished) == ("FAILED", True, True)
    (error,) = result.errors
    assert error.exception_class.__name__ == "Cancelled"
    assert error.traceback.endswith("The task was cancelled.\n")
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_a_task_that_code_outside_the_workers_runs_has_its_error_too():
    """A message, and no exception that could be imported."""
    from tasks_app.tasks import notify_step_completed

    result = framework_tasks.echo.enqueue()
    notify_step_completed(result.id, "FAILED", error="the pipeline is down")
    result.refresh()
    (error,) = result.errors
    assert error.exception_class.__name__ == "TasksError"
    assert "the pipeline is down" in error.traceback


def test_a_result_can_be_copied():
    """As the framework's own backends do."""
    result = framework_tasks.echo.enqueue(1)
    assert copy.deepcopy(result) == result
