"""Threads for sync attempts."""

from __future__ import annotations

import threading
from queue import SimpleQueue

from tasks_app.worker.threads import Threads


def test_jobs_run_at_the_same_time():
    """Only as many as meet at the barrier ever get past it."""
    barrier, results = threading.Barrier(8), SimpleQueue()
    threads = Threads(keep=8)
    for _ in range(8):
        threads.run(lambda: barrier.wait(20), results.put)
    assert sorted(results.get(timeout=20) for _ in range(8)) == list(range(8))


def test_a_job_that_never_ends_takes_no_thread_from_others():
    """Ten stuck ones, and the eleventh still runs."""
    stuck, results = threading.Event(), SimpleQueue()
    threads = Threads(keep=1)
    for _ in range(10):
        threads.run(lambda: stuck.wait(20), lambda result: None)
    threads.run(lambda: "ran", results.put)
    assert results.get(timeout=20) == "ran"
    stuck.set()


def test_an_idle_thread_is_used_again():
    """One after another they need one thread: it is idle before its result is heard of."""
    results: SimpleQueue[int] = SimpleQueue()
    threads = Threads(keep=1)
    seen = set()
    for _ in range(20):
        threads.run(threading.get_ident, results.put)
        seen.add(results.get(timeout=20))
    assert len(seen) == 1


def test_no_more_threads_stay_idle_than_are_kept():
    """What was started in place of abandoned jobs ends by itself."""
    barrier, results = threading.Barrier(6), SimpleQueue()
    threads = Threads(keep=2)

    def meet() -> threading.Thread:
        barrier.wait(20)
        return threading.current_thread()

    for _ in range(6):
        threads.run(meet, results.put)
    used = [results.get(timeout=20) for _ in range(6)]
    ended = 0
    while ended < 4:
        for thread in used:
            thread.join(0.01)
        ended = sum(not thread.is_alive() for thread in used)
    assert ended == 4
