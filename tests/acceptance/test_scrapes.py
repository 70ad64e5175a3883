"""Scrapes of real processes, as Prometheus makes them: while tasks run, requests are held, and the link breaks."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import socket
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest
from django.core.management import load_command_class

from tests.acceptance.processes import ROOT, ask, said, server, started, worker
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


async def test_a_web_process_and_a_worker_tell_what_they_do(database_url, tmp_path):
    """From submission to answer, each its own part; one trace goes through both, and each event is a line of JSON."""
    watched, spans, log = free_port(), tmp_path / "spans", tmp_path / "log"
    traced = {"DJANGO_SETTINGS_MODULE": "tests.traced_settings", "SPANS": str(spans)}
    traced["log_to"] = str(log)
    with (
        server("daphne", database_url, **traced) as (port, _),
        worker(database_url, "--metrics-port", str(watched), **traced),
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
    assert work.has("event_loop_lag_seconds")
    page = (ROOT / "docs" / "metrics.md").read_text()
    listed = set(re.findall(r"^\| `(asyncpoll_\w+)`", page, re.MULTILINE))
    assert web.families | work.families == listed
    traces = defaultdict(set)
    for span in map(json.loads, spans.read_text().splitlines()):
        traces[span["context"]["trace_id"]].add(span["name"])
    each = {"enqueue sample.add", "run sample.add", "answer long_poll"}
    assert sum(names == each for names in traces.values()) == TASKS
    happened = Counter(json.loads(line)["event"] for line in log.read_text().splitlines())
    assert happened["ASYNC_TASK_DONE"] == TASKS
    assert happened["hub.trust_began"] == happened["worker.started"] == 1


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


async def test_several_processes_on_one_port_answer_together(database_url):
    """Whoever is asked: a sum is the sum. One that is stuck is counted."""
    port, most = free_port(), 12
    web = ["manage.py", "serve", "--port", str(port), "--processes", "2"]
    async with AsyncExitStack() as stack:
        parent = stack.enter_context(started(web, database_url))
        await aeventually(lambda: _answer(port, 2), 60.0)
        waiting = await submitted_for(port, seconds=3600)
        path = f"tasks/{waiting}/long_poll?client_known_version=1"
        for _ in range(most):
            await stack.enter_async_context(held(port, path))
        await aeventually(lambda: _is(port, "held", most))
        scrapes = [await scraped(port) for _ in range(8)]
        by_process = {
            sample.labels["process"]: sample.value
            for sample in scrapes[0].samples
            if sample.name == "asyncpoll_held"
        }
        assert {scrape.value("held") for scrape in scrapes} == {most}
        assert len(by_process) == 2
        assert {scrape.value("link_up") for scrape in scrapes} == {2}
        asked = {_processes_of(scrape, "database_up").pop() for scrape in scrapes}
        assert asked <= set(by_process)
        assert all(len(_processes_of(scrape, "queue_depth")) <= 1 for scrape in scrapes)
        stuck, other = sorted(by_process, key=lambda process: by_process[process])
        os.kill(int(stuck), signal.SIGSTOP)
        scrape = await aeventually(lambda: _scraped_from(port, other), 20.0)
        assert scrape.value("processes", state="silent") == 1
        assert scrape.value("held") == by_process[other]
        os.kill(int(stuck), signal.SIGCONT)
        await aeventually(lambda: _answer(port, 2))
        assert (await scraped(port)).value("processes", state="silent") == 0
        [place] = _meeting_places(parent.pid)
        parent.terminate()
        assert await asyncio.to_thread(parent.wait, 20) == 0
    assert not place.exists()


async def _answer(port: int, count: int) -> bool:
    return (await scraped_once_up(port)).value("processes", state="answering") == count


async def _scraped_from(port: int, process: str) -> Scrape | None:
    """A scrape that this process got; others may be unable to answer any."""
    with suppress(TimeoutError, OSError, asyncio.IncompleteReadError):
        scrape = await asyncio.wait_for(scraped(port), 2.0)
        return scrape if _processes_of(scrape, "database_up") == {process} else None
    return None


def _processes_of(scrape: Scrape, name: str) -> set[str]:
    return {
        sample.labels["process"] for sample in scrape.samples if sample.name == f"asyncpoll_{name}"
    }


def _meeting_places(parent: int) -> set[Path]:
    """Where the children of that process share scrapes."""
    lines = [child.cmdline() for child in psutil.Process(parent).children()]
    return {Path(line[line.index("--siblings") + 1]) for line in lines}


async def test_workers_have_a_port_each(database_url):
    """From the one that was named on."""
    watched = two_free_ports()
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


def test_what_is_no_port_is_refused(capsys):
    """With the rule."""
    with pytest.raises(SystemExit, match="2"):
        load_command_class("tasks_app", "runworker").run_from_argv(
            ["", "runworker", "--metrics-port", "http"]
        )
    assert "is not a port, a number from 1 to 65535" in capsys.readouterr().err
