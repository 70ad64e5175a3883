"""All that may happen to workers and their database, at once."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest

from tests import fault_tasks
from tests.acceptance.consistency import assert_consistent
from tests.acceptance.squares import SETTINGS, Squares
from tests.acceptance.workers import Queue, begin_worker
from tests.postgres import Postgres
from tests.support import eventually

AWAY_SECONDS = 10.0
# How long a fault lasts, or tasks are run after it, until the next: three of them are two leases.
BEAT_SECONDS = 1.0
CUTS = 20


class Fleet:
    """Workers, each of which is started anew when it dies."""

    def __init__(self, queue: Queue, size: int) -> None:
        self.died_of: list[int] = []
        self._queue = queue
        self._workers = [self._begin() for _ in range(size)]
        self._ending = threading.Event()
        self._keeper = threading.Thread(target=self._keep)
        self._keeper.start()

    def send(self, place: int, number: int) -> None:
        """Send a signal to one of them."""
        self._workers[place].send_signal(number)

    def end(self) -> None:
        """Kill all of them."""
        self._ending.set()
        self._keeper.join()
        for worker in self._workers:
            worker.kill()
            worker.wait()

    def _keep(self) -> None:
        while not self._ending.wait(0.1):
            for place, worker in enumerate(self._workers):
                if (code := worker.poll()) is not None:
                    self.died_of.append(code)
                    self._workers[place] = self._begin()

    def _begin(self) -> subprocess.Popen[bytes]:
        return begin_worker(self._queue, "--concurrency", "10", **SETTINGS)


class Cuts:
    """Cuts the connections of all workers once a second, whatever else happens to them, from its making on."""

    def __init__(self, queue: Queue) -> None:
        self.count = 0
        self._queue = queue
        self._ending = threading.Event()
        self._knife = threading.Thread(target=self._cut)
        self._knife.start()

    def end(self) -> None:
        """Cut no more."""
        self._ending.set()
        self._knife.join()

    def _cut(self) -> None:
        while not self._ending.wait(BEAT_SECONDS):
            # A database that is away has cut them itself.
            with suppress(psycopg.OperationalError):
                self.count += self._queue.end_backends("asyncpoll%") > 0


@pytest.fixture
def fleet(squares: Squares) -> Iterator[Fleet]:
    two = Fleet(squares.queue, 2)
    yield two
    two.end()


@pytest.fixture
def cuts(squares: Squares) -> Iterator[Cuts]:
    each_second = Cuts(squares.queue)
    yield each_second
    each_second.end()


def faults(fleet: Fleet, postgres: Postgres) -> Iterator[None]:
    """One fault at a time, and nobody is left frozen at the end."""
    for frozen, other in ((0, 1), (1, 0)):
        fleet.send(frozen, signal.SIGSTOP)
        yield
        fleet.send(other, signal.SIGKILL)
        yield
        postgres.crash()
        postgres.start()
        yield
        fleet.send(frozen, signal.SIGCONT)
        yield
        fleet.send(frozen, signal.SIGKILL)
        yield
    postgres.stay_away(AWAY_SECONDS)
    yield


@pytest.mark.timeout(300)
def test_five_thousand_tasks_outlast_every_fault_at_once(squares, fleet, postgres, cuts):
    """Two workers are killed, frozen for two leases, and ended by their own tasks, while the database crashes, stays away
    for ten seconds, and cuts all connections every second for twenty."""
    leaving = squares.queue.enqueue_all(fault_tasks.leave, [(), ()])
    squares.enqueue(fault_tasks.square_and_die, 4)
    squares.enqueue(fault_tasks.square, 2_500, 0.05)
    squares.enqueue(fault_tasks.asquare, 2_494, 0.05)
    for _ in faults(fleet, postgres):
        time.sleep(BEAT_SECONDS)
    assert squares.done() < 5_000
    eventually(lambda: cuts.count >= CUTS)
    cuts.end()
    assert_consistent(squares.queue, squares.results, leaving, within=120.0)
    assert set(fleet.died_of) == {-signal.SIGKILL, fault_tasks.LEAVES_WITH}
