"""Workers that are killed, that freeze, and that their own tasks end, at the worst moments."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psycopg
import pytest

from tests import fault_tasks
from tests.acceptance.consistency import assert_consistent
from tests.acceptance.squares import SETTINGS, Squares
from tests.acceptance.workers import LEASES, Queue, runworker
from tests.support import eventually

# The end of each attempt's function is a line as well.
TALKATIVE = {**SETTINGS, "ASYNCPOLL_LOG_LEVEL": "DEBUG"}


@pytest.fixture
def squares(queue: Queue) -> Squares:
    return Squares(queue)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def succeeded_in(log: Path) -> int:
    """How many attempts have run to their end, as far as the worker's log says; not all of them are committed."""
    return log.read_text().count(": SUCCESS in ")


def test_what_a_killed_worker_was_running_is_run_again(squares, tmp_path):
    """SIGKILL mid-task: the side effect of the first attempt is there, but the second one's result counts."""
    gate = tmp_path / "gate"
    with runworker(squares.queue, **SETTINGS) as worker:
        tasks = squares.enqueue(fault_tasks.square_at, 5, str(gate))
        squares.until_begun(5)
        worker.kill()
        worker.wait()
    gate.touch()
    with runworker(squares.queue, **SETTINGS):
        assert_consistent(squares.queue, squares.results)
    assert [squares.queue.state(task)[1] for task in tasks] == [2] * 5


def test_a_worker_killed_between_run_and_commit_leaves_the_task_to_another(squares):
    """SIGKILL when the function has returned and its result is not written yet."""
    with runworker(squares.queue, **SETTINGS) as worker:
        (task,) = squares.enqueue(fault_tasks.square_and_die)
        assert worker.wait(60) == -signal.SIGKILL
    assert squares.queue.state(task)[:2] == ("RUNNING", 1)
    with runworker(squares.queue, **SETTINGS):
        assert_consistent(squares.queue, squares.results)
    assert squares.queue.state(task)[1] == 2


def test_a_worker_killed_half_way_through_the_commit_of_a_batch_loses_none_of_it(
    squares, tmp_path, log
):
    """Each of its tasks is committed whole or not at all, and those that are not are run again."""
    gate = tmp_path / "gate"
    with runworker(squares.queue, "--concurrency", "40", log=log, **TALKATIVE) as worker:
        tasks = squares.enqueue(fault_tasks.square_at, 40, str(gate))
        squares.until_begun(40)
        with psycopg.connect(squares.queue.url) as somebody:
            somebody.execute("SELECT FROM tasks_app_task WHERE id = %s FOR UPDATE", [tasks[20]])
            gate.touch()
            eventually(lambda: succeeded_in(log) == 40)
            worker.kill()
            worker.wait()
            # As when its whole machine is gone: no statement that it has sent goes on.
            squares.queue.end_backends("asyncpoll worker")
    assert squares.queue.state(tasks[20])[:2] == ("RUNNING", 1)
    with runworker(squares.queue, **SETTINGS):
        assert_consistent(squares.queue, squares.results)
    assert squares.queue.state(tasks[20])[1] == 2


def test_a_commit_that_outlives_its_worker_either_counts_or_is_run_again(squares, tmp_path, log):
    """It waits for somebody's lock while its worker is killed, and may go on afterwards."""
    gate = tmp_path / "gate"
    with runworker(squares.queue, log=log, **TALKATIVE) as worker:
        (task,) = squares.enqueue(fault_tasks.square_at, 1, str(gate))
        squares.until_begun(1)
        with psycopg.connect(squares.queue.url) as somebody:
            somebody.execute("SELECT FROM tasks_app_task WHERE id = %s FOR UPDATE", [task])
            gate.touch()
            eventually(lambda: succeeded_in(log) == 1)
            worker.kill()
            worker.wait()
    with runworker(squares.queue, **SETTINGS):
        assert_consistent(squares.queue, squares.results)


def test_workers_killed_one_after_the_other_amid_many_tasks_lose_none(squares):
    """Each is killed while it claims, runs and commits in batches."""
    squares.enqueue(fault_tasks.square, 600, 0.02)
    squares.enqueue(fault_tasks.asquare, 600, 0.02)
    for _ in range(3):
        already = squares.done()
        with runworker(squares.queue, **SETTINGS) as worker:
            squares.until_done(already + 100)
            worker.kill()
            worker.wait()
        assert squares.done() < len(squares.results)
    with runworker(squares.queue, **SETTINGS):
        assert_consistent(squares.queue, squares.results)


def test_a_worker_frozen_for_two_leases_is_fenced_off_and_says_so(squares, tmp_path, log):
    """SIGSTOP, then SIGCONT: the fence in its commit drops each late result, the other worker's attempts count.

    Its heartbeat would find the leases lost as well, and maybe before that: it gets no answer meanwhile.
    """
    gate = tmp_path / "gate"
    with runworker(squares.queue, log=log, **SETTINGS) as frozen:
        tasks = squares.enqueue(fault_tasks.square_at, 10, str(gate))
        squares.until_begun(10)
        frozen.send_signal(signal.SIGSTOP)
        thawed_at = time.monotonic() + 2 * float(LEASES["ASYNCPOLL_LEASE_SECONDS"])
        gate.touch()
        with runworker(squares.queue, **SETTINGS):
            squares.until_done(10)
            eventually(lambda: time.monotonic() > thawed_at)
            with psycopg.connect(squares.queue.url) as somebody:
                somebody.execute(
                    "SELECT FROM tasks_app_workerprocess WHERE pid = %s FOR UPDATE", [frozen.pid]
                )
                frozen.send_signal(signal.SIGCONT)
                eventually(lambda: all(is_fenced_off(log, task) for task in tasks))
            assert_consistent(squares.queue, squares.results)
        squares.enqueue(fault_tasks.square, 10)
        assert_consistent(squares.queue, squares.results)
        frozen.terminate()
        assert frozen.wait(20) == 0
    assert [squares.queue.state(task)[1] for task in tasks] == [2] * 10


def is_fenced_off(log: Path, task: object) -> bool:
    """The log says that the result of the first attempt at the task is dropped."""
    return f"{task} attempt 1 was fenced off: its SUCCESS is dropped" in log.read_text()


def test_a_task_that_ends_its_process_fails_when_its_attempts_are_used_up(squares, log):
    """os._exit() at each attempt: its workers are restarted, and others that ran beside it are not lost."""
    (leaving,) = squares.queue.enqueue_all(fault_tasks.leave, [()])
    squares.enqueue(fault_tasks.square, 100, 0.05)
    with runworker(squares.queue, "--processes", "2", log=log, **SETTINGS):
        assert_consistent(squares.queue, squares.results, failing=[leaving])
    assert squares.queue.state(leaving) == ("FAILED", 3, 3, None)
    assert squares.queue.ask("SELECT error_type FROM tasks_app_task WHERE id = %s", leaving) == [
        ("LeaseExpired",)
    ]
    assert log.read_text().count("ended with code 7") == 3
