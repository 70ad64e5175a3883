"""`--metrics-port`, for commands whose processes serve nothing else."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence

from django.core.management.base import CommandParser

from tasks_app.observers import metrics
from tasks_app.observers.exposition import State, serve_metrics
from tasks_app.observers.states import LinkUse, LoopUse, PoolUse, WorkerUse
from tasks_app.wakeup.service import WakeupService
from tasks_app.worker.process import Worker


def add_metrics_port(parser: CommandParser) -> None:
    """Declare the option."""
    parser.add_argument(
        "--metrics-port",
        type=_port,
        help="answer Prometheus on this port of 127.0.0.1; of several processes, each on the next one",
    )


def metrics_options(port: int | None, number: int) -> Sequence[str]:
    """The option for the child process of that number, from 0."""
    return () if port is None else ("--metrics-port", str(port + number))


def watch_worker(port: int | None, worker: Worker) -> None:
    """Count what this worker does, if a port is given."""
    _watch(port, lambda: worker_states(worker))


def worker_states(worker: Worker) -> Sequence[State]:
    """What a worker is doing now. From any thread."""
    return (
        WorkerUse(running=worker.held.running, concurrency=worker.held.concurrency),
        LoopUse(lag_seconds=worker.late_seconds, tasks=worker.loop_tasks),
        PoolUse(worker.pool_stats),
    )


def watch_bridge(port: int | None, service: WakeupService) -> None:
    """Count what this bridge does, if a port is given."""
    _watch(port, lambda: (LinkUse(service.state), PoolUse(service.pool.stats)))


def _watch(port: int | None, states: Callable[[], Sequence[State]]) -> None:
    if port is not None:
        metrics.install()
        serve_metrics(port, states)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise ArgumentTypeError(f"{text!r} is not a port, a number from 1 to 65535")
    return int(text)
