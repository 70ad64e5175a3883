"""Scrapes of real processes, as Prometheus makes them: while tasks run, requests are held, and the link breaks."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from tests.acceptance.processes import ask, said, server, started, worker
from tests.acceptance.test_whole_path import followed, submitted
from tests.databases import created
from tests.fleet.proxy import Proxy
from tests.fleet.redis_server import RedisServer
from tests.holdsite.client import Connection
from tests.postgres import Postgres
from tests.scraping import Scrape
from tests.support import aeventually, free_port

TASKS = 8


async def scraped(port: int) -> Scrape:
    """What is there now."""
    answer = await ask(port, "/metrics")
    assert answer.status == 200, answer.body
    return Scrape(answer.body.decode())


async def scraped_once_up(port: int) -> Scrape:
    """The first scrape of a process that is still starting."""

    async def attempt() -> Scrape | None:
        try:
            return await scraped(port)
        except (OSError, asyncio.IncompleteReadError):
            return None

    return await aeventually(attempt, 60.0)


def two_free_ports() -> int:
    """The lower of two neighbours, neither in the range from which the system gives ports to whoever asks for any."""

    def is_free(port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) != 0

    candidates = (random.randrange(20_000, 32_000) for _ in range(100))
    return next(port for port in candidates if is_free(port) and is_free(port + 1))


@asynccontextmanager
async def held(port: int, path: str) -> AsyncIterator[Connection]:
    """A request that waits."""
    connection = await Connection.open(port)
    await connection.ask(f"/api/v1/{path}")
    try:
        yield connection
    finally:
        connection.hang_up()


async def submitted_for(port: int, seconds: float) -> str:
    """The id of a task that is due in so long."""
    run_at = (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()
    body = {"task": "sample.add", "kwargs": {"a": 1}, "run_at": run_at}
    answer = await ask(port, "/api/v1/tasks", "POST", json.dumps(body).encode())
    return answer.json["task_id"]


async def test_a_web_process_and_a_worker_tell_what_they_do(database_url):
    """From submission to answer, each its own part."""
    watched = free_port()
    with (
        server("daphne", database_url) as (port, _),
        worker(database_url, "--metrics-port", str(watched)),
    ):
        await scraped_once_up(watched)
        await aeventually(lambda: _is(port, "link_up", 1))
        waiting = await submitted_for(port, seconds=3600)
        async with (
            held(port, f"tasks/{waiting}/long_poll?client_known_version=1"),
            held(port, f"tasks/{waiting}/status?wait=true"),
        ):
            ids = [await submitted_for(port, seconds=1) for _ in range(TASKS)]
            for answers in await asyncio.gather(*(followed(port, each) for each in ids)):
                assert answers[-1]["status"] == "SUCCESS"
            await aeventually(lambda: _is(port, "held", 2))
            web, work = await scraped(port), await scraped(watched)
    ended = {"route": "long_poll", "outcome": "TERMINAL"}
    assert web.value("held", route="status") == web.value("held", route="long_poll") == 1
    assert web.value("holds_answered_total", **ended) == TASKS
    assert web.value("wake_latency_seconds_count") >= 1
    assert 0 < web.value("wake_latency_seconds_sum") < 60
    assert web.value("bridge", part="own") == web.value("layer_up") == 1
    assert web.value("batch_size_count", verb="read") >= 1
    assert web.value("database_up") == 1
    assert web.value("pool_connections") >= 1
    assert work.value("tasks_claimed_total") == TASKS
    assert work.value("attempts_finished_total", task="sample.add", status="SUCCESS") == TASKS
    assert work.value("changes_committed_total") >= TASKS
    assert work.value("commit_seconds_count") >= 1
    assert work.value("attempt_seconds_count") == work.value("queue_wait_seconds_count") == TASKS
    assert work.value("worker_concurrency") == 20
    assert work.value("worker_running") == 0


async def _is(port: int, name: str, value: float) -> bool:
    return (await scraped(port)).value(name) == value


@pytest.mark.parametrize("kind", ["uvicorn", "granian"])
async def test_every_server_is_counted(kind, database_url):
    """Also before the first scrape."""
    with server(kind, database_url) as (port, _):
        await ask(port, f"/api/v1/tasks/{await submitted(port, a=1)}/long_poll")
        assert (await scraped(port)).value("holds_answered_total", outcome="CHANGED") == 1


@pytest.fixture
def own_url(postgres: Postgres, fragile_template: str) -> Iterator[str]:
    """A database on a server that can be reached through a proxy."""
    with created(postgres.url, fragile_template) as url:
        yield url


async def test_a_cut_link_shows_until_it_heals(postgres, own_url):
    """The listener's connection is blackholed and everything else works."""
    proxy = Proxy(postgres.socket)
    through = {"LISTEN_DATABASE_URL": postgres.url_through(proxy.port, own_url)}
    try:
        with server("daphne", own_url, **through) as (port, _):
            await aeventually(lambda: _is(port, "link_up", 1))
            proxy.cut()
            await aeventually(lambda: _is(port, "link_up", 0))
            scrape = await scraped(port)
            assert scrape.value("link_losses_total") == 1
            assert scrape.value("layer_up") == scrape.value("database_up") == 1
            proxy.mend()
            await aeventually(lambda: _is(port, "link_up", 1))
            assert (await scraped(port)).value("listener_connects_total") >= 2
    finally:
        proxy.close()


async def test_of_several_processes_each_answers_for_itself(database_url):
    """Web processes share a port; workers have one each."""
    port, watched = free_port(), two_free_ports()
    web = ["manage.py", "serve", "--port", str(port), "--processes", "2"]
    seen: set[str] = set()

    async def both_answered() -> bool:
        scrape = await scraped_once_up(port)
        seen.update(sample.labels["process"] for sample in scrape.samples)
        return len(seen) == 2

    with started(web, database_url):
        await aeventually(both_answered, 60.0)
    with worker(database_url, "--processes", "2", "--metrics-port", str(watched)):
        workers = [await scraped_once_up(watched + number) for number in range(2)]
    processes = {scrape.samples[0].labels["process"] for scrape in workers}
    assert len(processes) == 2


async def test_a_bridge_tells_that_it_leads(database_url, tmp_path):
    """To whoever asks on its machine."""
    redis = RedisServer(tmp_path)
    redis.start()
    watched = free_port()
    layer = {"CHANNEL_REDIS_URL": f"redis://127.0.0.1:{redis.port}"}
    command = ["manage.py", "runbridge", "--metrics-port", str(watched)]
    try:
        with started(command, database_url, **layer):
            await scraped_once_up(watched)
            await aeventually(lambda: _leads(watched))
    finally:
        redis.kill()


async def _leads(port: int) -> bool:
    scrape = await scraped(port)
    facts = [scrape.value("bridge", part="leader"), scrape.value("link_up")]
    return [*facts, scrape.value("bridge_elections_total")] == [1, 1, 1]


def test_a_port_that_is_taken_is_said(database_url):
    """In one sentence, and the worker does not start."""
    with server("daphne", database_url) as (port, _):
        code, output = said(["manage.py", "runworker", "--metrics-port", str(port)], database_url)
    assert code == 1
    assert f"Metrics can't be served on port {port} of 127.0.0.1" in output
    assert "Traceback" not in output


def test_what_is_no_port_is_refused(database_url):
    """With the rule."""
    code, output = said(["manage.py", "runworker", "--metrics-port", "http"], database_url)
    assert code == 2
    assert "is not a port, a number from 1 to 65535" in output
