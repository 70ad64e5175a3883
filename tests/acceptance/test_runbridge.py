"""`manage.py runbridge`: a bridge apart from the web processes."""

from __future__ import annotations

import signal

import pytest

from tests.acceptance.processes import ask, said, server, started
from tests.fleet.redis_server import RedisServer
from tests.support import aeventually


@pytest.fixture
def redis_url(tmp_path):
    """Valkey."""
    redis = RedisServer(tmp_path)
    redis.start()
    yield f"redis://127.0.0.1:{redis.port}"
    redis.kill()


async def test_web_processes_that_may_not_lead_hear_those_that_do_nothing_else(
    database_url, redis_url
):
    """Without one they sweep; it ends when it is told to."""
    layer = {"CHANNEL_REDIS_URL": redis_url}
    bridge = ["manage.py", "runbridge"]
    with server("daphne", database_url, ASYNCPOLL_BRIDGE="0", **layer) as (port, _):

        async def link():
            answer = (await ask(port, "/readyz")).json
            return answer["bridge"], answer["link"]

        async def is_up():
            return await link() == ("elsewhere", "up")

        async def is_down():
            return await link() == ("elsewhere", "down")

        assert await is_down()
        with started(bridge, database_url, **layer) as process:
            await aeventually(is_up)
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        await aeventually(is_down)


def test_a_bridge_that_nobody_would_hear_is_refused(database_url):
    """With a layer of its own for each process, each listens for itself."""
    code, output = said(["manage.py", "runbridge"], database_url)
    assert code == 1
    assert "private to each process" in output
    assert "CHANNEL_REDIS_URL" in output
