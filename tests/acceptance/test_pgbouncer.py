"""A real pgbouncer in transaction mode: in front of everything but LISTEN it works, in front of LISTEN it is refused."""

from __future__ import annotations

import asyncio

import pytest

from tests.acceptance.processes import ask, said, server, worker
from tests.acceptance.test_whole_path import followed, submitted
from tests.fleet.pgbouncer import pgbouncer
from tests.support import aeventually

REMEDY = "set LISTEN_DATABASE_URL to the database server itself"


@pytest.fixture
def pooled_url(database_url):
    """The test's database through pgbouncer."""
    with pgbouncer(database_url) as url:
        yield url


async def test_everything_but_listen_works_through_a_transaction_pooler(database_url, pooled_url):
    """Submissions, claims, commits, and held polls that are woken by them."""
    direct = {"LISTEN_DATABASE_URL": database_url}
    with (
        server("daphne", pooled_url, **direct) as (port, _),
        worker(pooled_url, **direct),
    ):

        async def is_heard():
            return (await ask(port, "/readyz")).json["link"] == "up"

        await aeventually(is_heard)
        for number in range(10):
            answers = await followed(port, await submitted(port, a=number, b=1))
            assert answers[-1]["result"] == number + 1
        many = [submitted(port, a=number, b=2) for number in range(30)]
        ids = await asyncio.gather(*many)
        ends = await asyncio.gather(*(followed(port, task_id) for task_id in ids))
        assert [answers[-1]["result"] for answers in ends] == [number + 2 for number in range(30)]


@pytest.mark.parametrize(
    "command",
    [
        ["manage.py", "serve", "--port", "0"],
        ["manage.py", "runworker"],
        ["manage.py", "runbridge"],
        ["-m", "uvicorn", "asyncpoll.asgi:application", "--port", "0"],
    ],
)
def test_a_listener_behind_it_is_refused_at_start_with_the_remedy(pooled_url, command):
    """Although nobody else uses it: when idle, a notification to oneself would even arrive."""
    layer = {"CHANNEL_REDIS_URL": "redis://127.0.0.1:1"} if "runbridge" in command else {}
    code, output = said(command, pooled_url, **layer)
    assert code != 0
    assert REMEDY in output
    assert "Traceback" not in output


async def test_a_session_pooler_is_no_obstacle(database_url):
    """It keeps the session, so LISTEN works through it."""
    with pgbouncer(database_url, mode="session") as url, server("daphne", url) as (port, _):

        async def is_heard():
            return (await ask(port, "/readyz")).json["link"] == "up"

        await aeventually(is_heard)
