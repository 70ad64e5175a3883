"""Executors outside this code base, as real processes against a real server. No worker of ours runs anywhere here."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.processes import ask, server
from tests.databases import created
from tests.external_tasks import QUEUE
from tests.holdsite.client import Connection
from tests.programs import program
from tests.support import aeventually

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "worker.mjs"
CLAIM = f"/api/v1/queues/{QUEUE}/claim"


@contextmanager
def node_worker(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The example worker."""
    node = program("node", package="nodejs")
    process = subprocess.Popen([node, str(EXAMPLE), f"http://127.0.0.1:{port}", QUEUE])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def shared_port(migrated_template: str) -> Iterator[int]:
    """Of a server whose tests let no claim outlive them."""
    with created(os.environ["DATABASE_URL"], migrated_template) as url:
        with server("daphne", url) as (port, _):
            yield port


@pytest.fixture
async def node(shared_port: int) -> AsyncIterator[subprocess.Popen[bytes]]:
    """The example worker at that server, which afterwards holds nothing of it any more."""
    with node_worker(shared_port) as worker:
        yield worker
    await aeventually(lambda: _holds(shared_port, 0))


async def post(port, path, **body):
    answer = await ask(port, path, "POST", json.dumps(body).encode())
    assert answer.status < 300, answer.body
    return answer.json


async def submitted(port, pages, milliseconds, name="shop.render"):
    """A task that takes so long per page."""
    kwargs = {"pages": [f"page {number}" for number in range(pages)], "dpi": milliseconds}
    return (await post(port, "/api/v1/tasks", task=name, kwargs=kwargs))["task_id"]


async def followed(port, task_id, until=lambda answer: not answer["should_continue_polling"]):
    """Follow a task with held polls; gives every answer."""
    answers, known = [], 0
    while not answers or not until(answers[-1]):
        path = f"/api/v1/tasks/{task_id}/long_poll?client_known_version={known}"
        answers.append((await ask(port, path)).json)
        known = answers[-1]["version"]
    return answers


async def test_a_worker_in_another_language_runs_a_task_that_a_client_waits_for(shared_port, node):
    """Claim held, progress seen, result answered; SIGTERM ends it cleanly."""
    answers = await followed(shared_port, await submitted(shared_port, pages=3, milliseconds=20))
    assert {"rendered page 0", "rendered page 1"} <= {answer["message"] for answer in answers}
    assert answers[-1] == {
        **answers[-1],
        "status": "SUCCESS",
        "result": {"rendered": 3},
        "attempt": 1,
    }
    node.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(node.wait, 10) == 0


async def test_a_task_that_the_worker_does_not_know_fails_for_good(shared_port, node):
    """No other attempt is wasted on it."""
    last = (await followed(shared_port, await submitted(shared_port, 1, 1, "sample.render")))[-1]
    assert (last["status"], last["attempt"]) == ("FAILED", 1)
    assert last["error"]["message"] == "This executor knows no task sample.render"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [((), 2, "usage: ASYNCPOLL_TOKEN="), (("wrong token",), 1, "token")],
)
def test_a_worker_that_can_do_nothing_says_why(shared_port, arguments, code, said):
    """In a line, and ends."""
    given = [f"http://127.0.0.1:{shared_port}", QUEUE] if arguments else []
    environment = {**os.environ, "ASYNCPOLL_TOKEN": "ap_wrong"}
    command = [program("node", package="nodejs"), str(EXAMPLE), *given]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr.count("\n")) == (code, 1)
    assert said in ended.stderr


async def test_a_cancel_reaches_the_worker_in_another_language(shared_port, node):
    """With the answer to its next report."""
    task_id = await submitted(shared_port, pages=1_000, milliseconds=50)
    await followed(shared_port, task_id, lambda answer: answer["progress"])
    await post(shared_port, f"/api/v1/tasks/{task_id}/cancel")
    assert (await followed(shared_port, task_id))[-1]["status"] == "CANCELLED"


async def test_what_a_killed_worker_leaves_is_finished_by_another(database_url):
    """Its lease runs out, upkeep in the web process gives the task back, and the hint wakes the next claim."""
    short = {"ASYNCPOLL_LEASE_SECONDS": "1", "ASYNCPOLL_HEARTBEAT_SECONDS": "0.5"}
    with server("daphne", database_url, **short) as (port, _):
        with node_worker(port) as first:
            task_id = await submitted(port, pages=60, milliseconds=20)
            await followed(port, task_id, lambda answer: answer["progress"])
            first.kill()
        with node_worker(port):
            last = (await followed(port, task_id))[-1]
    assert (last["status"], last["attempt"], last["result"]) == ("SUCCESS", 2, {"rendered": 60})


async def test_a_claim_whose_connection_broke_is_there_for_the_next_request(database_url):
    """Also from another server process, whatever became of the first."""
    body = json.dumps({"claim_id": "cut off", "limit": 2, "max_hold_seconds": 25}).encode()
    with psycopg.connect(database_url, autocommit=True) as database:

        def running():
            rows = "SELECT id::text FROM tasks_app_task WHERE status = 'RUNNING' ORDER BY id"
            return [task_id for (task_id,) in database.execute(rows)]

        # A machine that is busy takes long to start a server.
        patience = {"ASYNCPOLL_LEASE_SECONDS": "120"}
        with server("daphne", database_url, **patience) as (port, _):
            connection = await Connection.open(port)
            await connection.ask(CLAIM, "POST", body, "Content-Type: application/json\r\n")
            await aeventually(lambda: _holds(port, 1))
            task_id = await submitted(port, pages=1, milliseconds=1)
            await aeventually(lambda: running() == [task_id])
            connection.hang_up()
        with server("daphne", database_url, **patience) as (port, _):
            again = await post(port, CLAIM, **json.loads(body))
            assert again["repeated"]
            [task] = again["tasks"]
            assert (task["task_id"], task["attempt"]) == (task_id, 1)
            path = f"/api/v1/tasks/{task_id}/steps"
            ended = await post(
                port, path, lease_token=task["lease_token"], status="SUCCESS", result=1
            )
            assert ended["status"] == "SUCCESS"


@pytest.mark.parametrize("kind", ["daphne", "uvicorn", "granian"])
async def test_a_claim_is_held_and_woken_under_every_server(kind, database_url):
    """And no thread is spent on it."""
    with server(kind, database_url) as (port, _):
        claim = asyncio.ensure_future(
            post(port, CLAIM, claim_id="held", limit=1, max_hold_seconds=25)
        )
        await aeventually(lambda: _holds(port, 1))
        task_id = await submitted(port, pages=1, milliseconds=1)
        answer = await claim
        assert [task["task_id"] for task in answer["tasks"]] == [task_id]
        assert answer["hold_duration_ms"] < answer["hold_granted_ms"]


async def _holds(port, count):
    return (await ask(port, "/readyz")).json["held"] == count
