"""`manage.py runworker`: run tasks until told to stop."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tasks_app import queues
from tasks_app.errors import ConfigurationError
from tasks_app.management.watching import add_metrics_port, metrics_options, watch_worker
from tasks_app.observers import logs, tracing
from tasks_app.store.migrated import refuse_unmigrated
from tasks_app.upkeep import Upkeep
from tasks_app.worker.main import run_worker
from tasks_app.worker.process import Options
from tasks_app.worker.supervisor import supervise


class Command(BaseCommand):
    """Parses arguments and nothing else."""

    help = (
        "Run tasks. SIGTERM or Ctrl-C: claim no more, let running tasks finish within --grace, give back the rest; "
        "a second signal gives back at once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--queues",
            type=_names,
            help="comma-separated; every queue that is not external if not given",
        )
        parser.add_argument(
            "--concurrency", type=_count, default=20, help="tasks at once, per process (20)"
        )
        parser.add_argument(
            "--batch", type=_count, help="tasks a claim takes at most (as many as may begin)"
        )
        parser.add_argument("--processes", type=_count, default=1, help="worker processes (1)")
        parser.add_argument(
            "--grace", type=_seconds, default=30.0, help="seconds for running tasks at the end (30)"
        )
        add_metrics_port(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until a signal; exit code 1 and one sentence if it can't."""
        try:
            self._run(options)
        except ConfigurationError as error:
            raise CommandError(str(error)) from error

    def _run(self, options: dict[str, Any]) -> None:
        _refuse_external(options["queues"] or ())
        refuse_unmigrated("worker")
        logs.install()
        tracing.install()
        logs.ensure_shown()
        port, grace = options["metrics_port"], options["grace"]
        if options["processes"] > 1:
            supervise(options["processes"], grace, lambda number: metrics_options(port, number))
        else:
            own = Options(options["queues"], options["concurrency"], grace, options["batch"])
            run_worker(own, Upkeep, lambda worker: watch_worker(port, worker))


def _refuse_external(names: tuple[str, ...]) -> None:
    for name in names:
        if reserved_by := queues.reserved_by(name):
            raise CommandError(
                f"--queues names {name!r}, whose tasks are run outside this code base, by {reserved_by}; leave it out."
            )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ArgumentTypeError(f"{text!r} names no queue; write --queues a,b")
    return names


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 86400")
    return seconds
