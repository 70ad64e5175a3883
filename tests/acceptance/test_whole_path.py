"""A task goes in over HTTP, a worker runs it, a held poll answers: real processes throughout."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import psutil
import psycopg
import pytest
import uvicorn

from tasks_app.hold.admission import admission
from tasks_app.models.task import new_task_id
from tasks_app.serving.handler import get_asgi_application
from tasks_app.store import NewTask, enqueue
from tasks_app.wakeup.service import current_service
from tests.acceptance.processes import ask, server, worker
from tests.holdsite.client import Connection
from tests.support import aeventually, free_port

HANG_UPS = 5_000
AT_ONCE = 250
# Of a server process: a pool of four, the listener and the announcer.
MOST_CONNECTIONS = 6


async def submitted(port, task="sample.add", **kwargs):
    """Submit, and give the task's id."""
    answer = await ask(
        port, "/api/v1/tasks", "POST", json.dumps({"task": task, "kwargs": kwargs}).encode()
    )
    assert answer.status == 202, answer.body
    return answer.json["task_id"]


async def followed(port, task_id):
    """Follow a task with held polls to its end; gives every answer."""
    answers, known = [], 0
    while not answers or answers[-1]["should_continue_polling"]:
        answer = await ask(port, f"/api/v1/tasks/{task_id}/long_poll?client_known_version={known}")
        assert answer.status == 200, answer.body
        answers.append(answer.json)
        known = answer.json["version"]
    return answers


@pytest.mark.parametrize("kind", ["daphne", "uvicorn", "granian"])
async def test_a_submitted_task_is_run_and_its_end_answers_the_held_poll(kind, database_url):
    """Under every server."""
    with server(kind, database_url) as (port, _), worker(database_url):
        answers = await followed(port, await submitted(port, a=2, b=40))
    assert answers[-1] == {
        **answers[-1],
        "status": "SUCCESS",
        "outcome": "TERMINAL",
        "result": 42,
        "version": 3,
    }


async def test_the_demo_task_reports_each_stage_and_a_true_result(database_url):
    """What a newcomer sees first."""
    with server("daphne", database_url) as (port, _), worker(database_url):
        answers = await followed(port, await submitted(port, "demo.dependency_report", limit=5))
    progress = [answer["progress"] for answer in answers if answer["progress"] is not None]
    assert progress == sorted(progress)
    assert answers[-1]["status"] == "SUCCESS"
    assert len(answers[-1]["result"]["distributions"]) == 5


async def test_an_unwrapped_django_application_answers_correctly(database_url):
    """Only less cheaply: a thread for each held request."""
    plain = {"application": "tests.acceptance.plain_asgi:application"}
    with server("uvicorn", database_url, **plain) as (port, _), worker(database_url):
        answers = await followed(port, await submitted(port, a=1))
        assert answers[-1]["result"] == 2
        missing = await ask(port, f"/api/v1/tasks/{new_task_id()}/long_poll")
        assert (missing.status, missing.headers["content-type"]) == (
            404,
            "application/problem+json",
        )


async def hang_up_often(port, task_id):
    """Connect, ask for a hold, and leave without waiting: often, and at every moment of a request's life."""
    url = f"/api/v1/tasks/{task_id}/long_poll?client_known_version=1"

    async def once(turns):
        connection = await Connection.open(port)
        await connection.ask(url)
        for _ in range(turns):
            await asyncio.sleep(0)
        connection.hang_up()

    for _ in range(HANG_UPS // AT_ONCE):
        await asyncio.gather(*(once(number % 23) for number in range(AT_ONCE)))


async def test_five_thousand_hang_ups_leave_a_server_process_as_it_was(database_url):
    """Nothing is held, and threads, sockets and database connections are where they were."""
    with (
        server("daphne", database_url) as (port, pid),
        psycopg.connect(database_url, autocommit=True) as database,
    ):
        task_id = await submitted(port, a=1)
        process = psutil.Process(pid)

        def connections():
            rows = database.execute(
                "SELECT application_name FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return [name for (name,) in rows.fetchall()]

        def sockets():
            seen = process.net_connections()
            return len([one for one in seen if one.status == psutil.CONN_ESTABLISHED])

        # The submission was announced, so everything that a process starts at first need has been started.
        await aeventually(lambda: "asyncpoll announcer" in connections())
        threads = process.num_threads()
        await hang_up_often(port, task_id)

        async def is_as_before():
            held = (await ask(port, "/readyz")).json["held"]
            return held == 0 and sockets() <= 8 and process.num_threads() <= threads

        await aeventually(is_as_before)
        assert len(connections()) <= MOST_CONNECTIONS
        held = asyncio.ensure_future(
            ask(port, f"/api/v1/tasks/{task_id}/long_poll?client_known_version=1")
        )
        cancelled = await ask(port, f"/api/v1/tasks/{task_id}/cancel", "POST")
        assert cancelled.json["status"] == "CANCELLED"
        assert (await held).json["outcome"] == "TERMINAL"


@contextlib.asynccontextmanager
async def uvicorn_in_this_loop() -> AsyncIterator[int]:
    """The application under uvicorn in this very process, where its insides can be counted."""
    port = free_port()
    running = uvicorn.Server(
        uvicorn.Config(
            get_asgi_application(),
            port=port,
            log_level="warning",
            lifespan="off",  # its end would drain this very process, for the tests after this one as well
        )
    )
    running.install_signal_handlers = lambda: None  # type: ignore[method-assign]
    serving = asyncio.ensure_future(running.serve())
    await aeventually(lambda: running.started)
    yield port
    running.should_exit = True
    await serving


@pytest.mark.django_db(transaction=True)
async def test_five_thousand_hang_ups_leave_no_waiter_and_no_task(service):
    """Counted from inside."""
    task = NewTask(new_task_id(), "sample.add", "outside", "", 0, "[]", "{}", 3, 600.0)
    await service.pool.run(enqueue([task]))
    async with uvicorn_in_this_loop() as port:
        assert (await ask(port, "/readyz")).status == 200
        assert await current_service() is service
        before = len(asyncio.all_tasks())
        await hang_up_often(port, task.id)
        await aeventually(
            lambda: (admission.held, admission.inside, service.hub.waiting) == (0, 0, 0)
        )
        await aeventually(lambda: len(asyncio.all_tasks()) <= before)
        assert service.pool.stats.get("requests_waiting", 0) == 0
