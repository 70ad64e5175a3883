"""The main function of a worker process: signals in, exit out, however the tasks' own threads behave."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tasks_app import catalogue
from tasks_app.collector import calm_collector
from tasks_app.events import emit
from tasks_app.store.pool import Pool
from tasks_app.worker.forks import keep_signals_to_ourselves
from tasks_app.worker.patience import Patience
from tasks_app.worker.process import Options, Upkeep, Worker
from tasks_app.worker.supervisor import ParentWatch

# How long threads that tasks started may take to end before the process leaves without them.
_THREADS_SECONDS = 1.0


def run_worker(
    options: Options, make_upkeep: Callable[[Pool], Upkeep], watch: Callable[[Worker], object]
) -> None:
    """Be a worker process until SIGTERM or SIGINT; a second signal hurries. `watch` is given the worker to look at."""
    catalogue.discover()
    calm_collector()
    _run(_work(options, make_upkeep, watch))


def _run(main: Coroutine[Any, Any, None]) -> None:
    """asyncio.run(), which ends at a SystemExit or KeyboardInterrupt of whatever it runs. Those that a task raises end it
    alone; but of those in a coroutine that it began, asyncio tells the task and then us."""
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        work = loop.create_task(main)
        while not work.done():
            try:
                loop.run_until_complete(work)
            except (SystemExit, KeyboardInterrupt) as error:
                # With Python's own handler it is a Ctrl-C, before the worker has its own.
                is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
                if is_ours or work.done():
                    raise
                emit("task.escaped", error=error)


async def _work(
    options: Options, make_upkeep: Callable[[Pool], Upkeep], watched_by: Callable[[Worker], object]
) -> None:
    loop = asyncio.get_running_loop()
    # Our own instead of asyncio's, which on leaving would be waited for without limit.
    side_threads = ThreadPoolExecutor(thread_name_prefix="asyncpoll-side")
    loop.set_default_executor(side_threads)
    worker = Worker(options, make_upkeep)
    watched_by(worker)
    watch = ParentWatch(worker.stop)
    watch.start()
    loop.add_signal_handler(signal.SIGTERM, worker.stop)
    # A Ctrl-C in the terminal reaches parent and children alike, and the parent passes it on.
    on_interrupt = _ignore if watch.has_parent else worker.stop
    loop.add_signal_handler(signal.SIGINT, on_interrupt)
    keep_signals_to_ourselves()
    patience = Patience(
        loop, options.grace_seconds, lambda: bool(worker.overdue()), partial(_give_up, worker)
    )
    patience.hear([signal.SIGTERM] if watch.has_parent else [signal.SIGTERM, signal.SIGINT])
    patience.start()
    await worker.run()
    patience.end()
    await watch.stop()
    side_threads.shutdown(wait=False, cancel_futures=True)
    if worker.executor.stragglers or _threads_left(_THREADS_SECONDS):
        _leave()


def _give_up(worker: Worker, code: int) -> None:
    worker.give_up()
    _leave(code)


def _ignore() -> None:
    """Unlike SIG_IGN not inherited by processes that tasks start."""


def _threads_left(within: float) -> bool:
    """True if a thread that Python would wait for before it exits still runs after `within` seconds."""
    deadline = time.monotonic() + within
    waited_for = [
        thread
        for thread in threading.enumerate()
        if thread is not threading.main_thread() and not thread.daemon
    ]
    for thread in waited_for:
        thread.join(max(0.0, deadline - time.monotonic()))
    return any(thread.is_alive() for thread in waited_for)


def _leave(code: int = 0) -> None:
    """End the process although threads or coroutines of abandoned attempts still run; all that counts is written."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
