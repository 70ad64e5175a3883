"""`manage.py runworker` as a real process: started, stopped, killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from django.core.management import load_command_class

from tests import sample_tasks
from tests.acceptance.workers import children, runworker
from tests.support import eventually


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_sigterm_lets_a_running_task_finish_and_gives_back_nothing_of_it(queue, tmp_path):
    """Exit code 0, and the worker's end is recorded."""
    mark = tmp_path / "mark"
    with runworker(queue, "--concurrency", "1") as worker:
        running = queue.enqueue(sample_tasks.leave_mark, str(mark), 1.0)
        eventually(lambda: lines(mark))
        waiting = queue.enqueue(sample_tasks.add, 1)
        worker.terminate()
        assert worker.wait(20) == 0
    assert queue.state(running) == ("SUCCESS", 1, 0, 1)
    assert queue.state(waiting) == ("PENDING", 0, 0, None)
    assert len(lines(mark)) == 2
    assert not queue.workers()


def test_sigterm_leaves_nothing_behind_of_a_backlog_of_a_hundred_thousand(queue):
    """In the middle of it: what was claimed is finished or given back, the rest is as it was."""
    queue.enqueue(sample_tasks.aadd, 1)
    queue.execute(
        "INSERT INTO tasks_app_task SELECT copy.* FROM tasks_app_task t, generate_series(2, 100000) n, "
        "LATERAL jsonb_populate_record(t, jsonb_build_object('id', md5(n::text)::uuid)) AS copy"
    )
    with runworker(queue, "--concurrency", "200") as worker:
        eventually(
            lambda: queue.ask("SELECT 1 FROM tasks_app_task WHERE status = 'SUCCESS' LIMIT 1")
        )
        worker.terminate()
        assert worker.wait(60) == 0
    rows = queue.ask("SELECT status, count(*) FROM tasks_app_task GROUP BY status")
    counts = dict(rows)
    assert counts.keys() == {"PENDING", "SUCCESS"}
    assert sum(counts.values()) == 100_000
    left = "SELECT count(*) FROM tasks_app_task WHERE status = 'PENDING' AND (failures > 0 OR NOT ready)"
    assert queue.ask(left) == [(0,)]
    assert not queue.workers()


@pytest.mark.parametrize("how", ["the grace is over", "a second signal", "ctrl-c twice"])
def test_what_does_not_finish_is_released_and_the_worker_still_exits_with_0(queue, tmp_path, how):
    """Also when a thread never ends."""
    mark = tmp_path / "mark"
    grace = "0.2" if how == "the grace is over" else "600"
    number = signal.SIGINT if how == "ctrl-c twice" else signal.SIGTERM
    with runworker(queue, "--grace", grace) as worker:
        tasks = [
            queue.enqueue(sample_tasks.leave_mark, str(mark), 600.0),
            queue.enqueue(sample_tasks.sleep, 600.0),
        ]
        eventually(lambda: lines(mark) and all(queue.state(t)[0] == "RUNNING" for t in tasks))
        worker.send_signal(number)
        if how != "the grace is over":
            eventually(lambda: worker.poll() is not None or worker.send_signal(number))
        assert worker.wait(20) == 0
    for task in tasks:
        assert queue.state(task) == ("PENDING", 1, 0, None)
        assert queue.kinds(task)[-1] == "released"
    assert not queue.workers()


def test_a_task_that_blocks_the_event_loop_is_released_all_the_same(queue, tmp_path):
    """Not by the loop, which hears of no signal; and so is what runs beside it."""
    mark = tmp_path / "mark"
    with runworker(queue, "--grace", "0.5") as worker:
        beside = queue.enqueue(sample_tasks.leave_mark, str(mark), 600.0)
        eventually(lambda: lines(mark))
        task = queue.enqueue(sample_tasks.block_loop_at, str(mark), 600.0)
        eventually(lambda: len(lines(mark)) == 2)
        worker.terminate()
        assert worker.wait(20) == 0
    for released in (task, beside):
        assert queue.state(released) == ("PENDING", 1, 0, None)
        assert queue.kinds(released)[-1] == "released"
    assert not queue.workers()


def test_what_a_task_ends_is_not_its_worker(queue):
    """Not by a signal to a process that it forked, however soon it comes, nor by SystemExit in a coroutine that it began."""
    with runworker(queue, "--concurrency", "1") as worker:
        forks = queue.enqueue(sample_tasks.end_processes, 20)
        leaves = queue.enqueue(sample_tasks.leave_beside)
        after = queue.enqueue(sample_tasks.add, 1)
        eventually(lambda: queue.state(after)[0] == "SUCCESS")
        assert queue.state(forks) == ("SUCCESS", 1, 0, [-signal.SIGTERM] * 20)
        assert queue.state(leaves) == ("FAILED", 1, 1, None)
        worker.terminate()
        assert worker.wait(20) == 0


def test_a_thread_that_a_coroutine_left_behind_does_not_keep_the_worker(queue, tmp_path):
    """The coroutine was cancelled and has ended; what it started with to_thread() has not."""
    with runworker(queue, "--grace", "0") as worker:
        mark = tmp_path / "mark"
        task = queue.enqueue(sample_tasks.sleep_in_side_thread, str(mark), 600.0)
        eventually(lambda: lines(mark))
        worker.terminate()
        assert worker.wait(20) == 0
    assert queue.kinds(task)[-1] == "released"


def test_a_task_whose_worker_was_killed_is_rescued_and_completed_by_another(queue, tmp_path):
    """As attempt 2, after the lease ran out."""
    mark = tmp_path / "mark"
    with runworker(queue) as first:
        task = queue.enqueue(sample_tasks.hang_once, str(mark))
        eventually(lambda: lines(mark))
        first.kill()
        first.wait()
    with runworker(queue):
        eventually(lambda: queue.state(task)[0] == "SUCCESS")
    assert queue.state(task) == ("SUCCESS", 2, 1, 2)
    assert queue.kinds(task) == ["enqueued", "started", "rescued", "started", "succeeded"]


def test_a_frozen_worker_loses_its_task_and_its_late_result_is_dropped(queue, tmp_path):
    """SIGSTOP for longer than the lease, then SIGCONT: the other worker's attempt counts."""
    mark = tmp_path / "mark"
    with runworker(queue) as frozen:
        task = queue.enqueue(sample_tasks.leave_mark, str(mark), 0.5)
        eventually(lambda: lines(mark))
        frozen.send_signal(signal.SIGSTOP)
        with runworker(queue):
            eventually(lambda: queue.state(task)[0] == "SUCCESS")
            assert queue.state(task) == ("SUCCESS", 2, 1, 2)
            frozen.send_signal(signal.SIGCONT)
            eventually(lambda: any(line.startswith("ended 1 ") for line in lines(mark)))
            other = queue.enqueue(sample_tasks.add, 1)
            eventually(lambda: queue.state(other)[0] == "SUCCESS")
            frozen.terminate()
            assert frozen.wait(20) == 0
    assert queue.state(task) == ("SUCCESS", 2, 1, 2)


def test_each_of_several_processes_is_restarted_when_it_dies(queue):
    """Under one parent, which ends them all."""
    with runworker(queue, "--processes", "2") as parent:
        eventually(lambda: len(queue.workers()) == 2)
        first, second = (child.pid for child in children(parent))
        os.kill(first, signal.SIGKILL)
        eventually(lambda: len(queue.workers()) == 3)
        assert second in {child.pid for child in children(parent)}
        task = queue.enqueue(sample_tasks.add, 1)
        eventually(lambda: queue.state(task)[0] == "SUCCESS")
        parent.terminate()
        assert parent.wait(20) == 0
    assert queue.workers() == {first}


def test_a_ctrl_c_in_the_terminal_is_one_signal_and_not_two(queue, tmp_path):
    """It reaches parent and children alike; the children still let their tasks finish."""
    mark = tmp_path / "mark"
    with runworker(queue, "--processes", "2") as parent:
        task = queue.enqueue(sample_tasks.leave_mark, str(mark), 1.0)
        eventually(lambda: lines(mark))
        for pid in [parent.pid, *(child.pid for child in children(parent))]:
            os.kill(pid, signal.SIGINT)
        assert parent.wait(20) == 0
    assert queue.state(task) == ("SUCCESS", 1, 0, 1)


def test_children_whose_parent_was_killed_end_by_themselves(queue):
    """Nobody would restart or stop them."""
    with runworker(queue, "--processes", "2") as parent:
        eventually(lambda: len(queue.workers()) == 2)
        family = children(parent)
        parent.kill()
        eventually(lambda: not queue.workers())
        eventually(lambda: not any(child.is_running() for child in family))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--queues", " , "], "names no queue; write --queues a,b"),
        (["--concurrency", "0"], "is not a whole number from 1"),
        (["--processes", "two"], "is not a whole number from 1"),
        (["--grace", "-1"], "is not a number of seconds from 0 to 86400"),
        (["--grace", "nan"], "is not a number of seconds from 0 to 86400"),
    ],
)
def test_wrong_arguments_are_refused_with_the_rule(arguments, complaint, capsys):
    """Before anything starts."""
    with pytest.raises(SystemExit, match="2"):
        load_command_class("tasks_app", "runworker").run_from_argv(["", "runworker", *arguments])
    assert complaint in capsys.readouterr().err
