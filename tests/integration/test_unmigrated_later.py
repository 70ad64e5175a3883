"""A database that loses its tables while processes run: restored from before an upgrade, or made anew."""

from __future__ import annotations

import logging

import pytest

from tasks_app.observers import logs
from tasks_app.observers.repeats import Repeats
from tests import sample_tasks
from tests.integration.api_support import API, is_problem
from tests.support import aeventually
from tests.workers import ended, fetch, working

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def away():
    """Hides the table of tasks, and brings it back at the end at the latest."""
    yield lambda: fetch("ALTER TABLE tasks_app_task RENAME TO tasks_app_hidden")
    await fetch("ALTER TABLE IF EXISTS tasks_app_hidden RENAME TO tasks_app_task")


@pytest.fixture
def logged(monkeypatch):
    """Events become lines, none of which was said before."""
    monkeypatch.setattr(logs, "_repeats", Repeats())
    end = logs.install()
    yield
    end()


async def test_a_worker_says_once_what_to_do_and_loses_nothing(
    caplog, away, emitted, settings, logged
):
    """Its loops all fail, its results wait, and it carries on when the tables are back."""
    settings.ASYNCPOLL = {**settings.ASYNCPOLL, "HEARTBEAT_SECONDS": 0.2}
    caplog.set_level(logging.INFO, "tasks_app")
    async with working(concurrency=2) as worker:
        task = await sample_tasks.wait_at.aenqueue("gate")
        await aeventually(lambda: worker.held.running == 1)
        await away()
        sample_tasks.gates["gate"].set()
        for failed in ("commit.retried", "heartbeat.failed", "loop.failed"):
            await aeventually(lambda failed=failed: emitted.of(failed))
        await fetch("ALTER TABLE tasks_app_hidden RENAME TO tasks_app_task")
        assert (await ended(task)).attempt == 1
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [line for line in lines if "does not exist" in line] == [
        "The database 'default' is not as this process found it at its start: relation \"tasks_app_task\" does not exist; "
        "run manage.py migrate."
    ]


async def test_a_request_is_told_that_the_database_is_not_there(client, away):
    """Tables are nobody's business outside; what is the matter is in the log, and on the page for whoever operates it."""
    await away()
    response = await client.get(f"{API}/tasks")
    assert "tasks_app" not in is_problem(response, 503, "unavailable")
    assert response.headers["retry-after"] == "2"
