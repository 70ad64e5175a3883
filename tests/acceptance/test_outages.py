"""Databases that crash, stay away, and cut every connection, under a worker that goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks_app.insights.columns import Columns
from tasks_app.insights.measured import Measured
from tasks_app.insights.reading import read_into
from tests import fault_tasks
from tests.acceptance.consistency import assert_consistent
from tests.acceptance.squares import SETTINGS, Squares
from tests.acceptance.workers import runworker
from tests.fleet.proxy import Proxy
from tests.postgres import Postgres

UNLOGGED = {"DJANGO_SETTINGS_MODULE": "tests.unlogged_settings"}
AWAY_SECONDS = 10.0
# More than two leases of 1.5 s.
OVER_LEASES_SECONDS = 4.0
# Time in which a worker connects anew and goes on, before it is cut off again.
BETWEEN_CUTS_SECONDS = 1.0
# Nothing that runs when the database goes away for ten seconds loses its lease.
LONG_LEASES = {"ASYNCPOLL_LEASE_SECONDS": "40", "ASYNCPOLL_HEARTBEAT_SECONDS": "1"}


def assert_is_readable(log: Path) -> None:
    """Every line is an event, also what the pool of connections says, and the planner reads the ends of tasks."""
    loggers = {json.loads(line).get("logger") for line in log.read_text().splitlines()}
    assert loggers >= {None, "tasks_app", "psycopg.pool"}
    found = Measured()
    with log.open() as lines:
        read_into(found, str(log), lines, Columns())
    assert found.count and not found.bad


def assert_nothing_was_done_twice(squares: Squares) -> None:
    """Each task has run once, and none has failed."""
    assert squares.begun() == len(squares.results)
    assert squares.queue.ask("SELECT max(failures) FROM tasks_app_task") == [(0,)]


def test_a_worker_goes_on_after_a_crash_of_the_database(squares, postgres):
    """Postgres stopped in immediate mode and started again, three times while tasks are claimed and committed."""
    squares.enqueue(fault_tasks.square, 500, 0.02)
    squares.enqueue(fault_tasks.asquare, 500, 0.02)
    with runworker(squares.queue, **SETTINGS) as worker:
        for _ in range(3):
            already = squares.done()
            squares.until_done(already + 100)
            postgres.crash()
            postgres.start()
        assert squares.done() < len(squares.results)
        assert_consistent(squares.queue, squares.results)
        assert worker.poll() is None


def test_short_leases_that_run_out_while_the_database_is_away_are_given_to_other_attempts(
    squares, postgres, tmp_path
):
    """Those of everything that ran when it went away. Where no logging was set up, the log can be read all the same."""
    log = tmp_path / "worker.log"
    squares.enqueue(fault_tasks.square, 300, 0.1)
    squares.enqueue(fault_tasks.asquare, 300, 0.1)
    with runworker(squares.queue, log=log, **(SETTINGS | UNLOGGED)) as worker:
        squares.until_done(50)
        postgres.stay_away(OVER_LEASES_SECONDS)
        assert_consistent(squares.queue, squares.results)
        assert worker.poll() is None
    assert_is_readable(log)


def test_results_are_kept_while_the_database_is_away(squares, postgres):
    """Ten seconds without a database cost no work, and are nobody's failure, as long as the leases last."""
    squares.enqueue(fault_tasks.square, 300, 0.1)
    squares.enqueue(fault_tasks.asquare, 300, 0.1)
    with runworker(squares.queue, **SETTINGS, **LONG_LEASES):
        squares.until_done(50)
        postgres.stay_away(AWAY_SECONDS)
        assert_consistent(squares.queue, squares.results)
    assert_nothing_was_done_twice(squares)


@pytest.fixture
def link(squares: Squares, postgres: Postgres) -> Iterator[tuple[Proxy, str]]:
    """A TCP link to the database that may be blackholed, and the URL that goes through it."""
    proxy = Proxy(postgres.socket)
    yield proxy, postgres.url_through(proxy.port, squares.queue.url)
    proxy.close()


def test_a_worker_goes_on_when_its_connections_die_without_a_word(squares, link):
    """No packet gets through on those that it had, as after a failover: it connects anew, and no work is lost."""
    proxy, url = link
    squares.enqueue(fault_tasks.square, 500, 0.1)
    squares.enqueue(fault_tasks.asquare, 500, 0.1)
    with runworker(squares.queue, DATABASE_URL=url, **SETTINGS, **LONG_LEASES) as worker:
        squares.until_done(50)
        proxy.blackhole()
        assert_consistent(squares.queue, squares.results)
        assert worker.poll() is None
    assert_nothing_was_done_twice(squares)


def test_a_worker_goes_on_while_all_connections_are_cut_every_second(squares):
    """For 20 s. What was on its way then is neither lost nor done twice."""
    squares.enqueue(fault_tasks.square, 2_000, 0.12)
    squares.enqueue(fault_tasks.asquare, 2_000, 0.12)
    with runworker(squares.queue, **SETTINGS, **LONG_LEASES) as worker:
        for _ in range(20):
            time.sleep(BETWEEN_CUTS_SECONDS)
            assert squares.queue.end_backends()
        assert squares.done() < len(squares.results)
        assert_consistent(squares.queue, squares.results)
        assert worker.poll() is None
    assert_nothing_was_done_twice(squares)
