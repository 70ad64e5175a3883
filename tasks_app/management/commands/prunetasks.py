"""`manage.py prunetasks`: delete what ended long ago."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tasks_app import conf
from tasks_app.management.ages import SECONDS_PER_DAY, seconds
from tasks_app.management.refusals import database_needed
from tasks_app.observers.wording import counted
from tasks_app.store import count_old
from tasks_app.store.driver import run
from tasks_app.upkeep import prune_now


class Command(BaseCommand):
    """Parses arguments and nothing else."""

    help = (
        "Delete tasks that ended long ago, with their history, and what is left of tasks and workers that are gone. "
        "Each batch is a transaction of its own; it can be stopped and run beside others at any time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--older-than",
            type=seconds,
            metavar="AGE",
            help="time since the end: days, or a number with d, h, m or s (ASYNCPOLL['RETENTION_DAYS'])",
        )
        parser.add_argument(
            "--batch", type=_count, help="tasks in one transaction (ASYNCPOLL['PRUNE_BATCH'])"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="only say how many tasks would be deleted"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Delete, and say what was deleted."""
        settings = conf.current()
        older_than = options["older_than"]
        if older_than is None:
            older_than = settings.RETENTION_DAYS * SECONDS_PER_DAY
            if not older_than:
                raise CommandError(
                    "ASYNCPOLL['RETENTION_DAYS'] is 0, which keeps everything; say --older-than AGE."
                )
        with database_needed():
            if options["dry_run"]:
                self.stdout.write(f"Would delete {counted(run(count_old(older_than)), 'tasks')}.")
            else:
                self._prune(older_than, options["batch"] or settings.PRUNE_BATCH)

    def _prune(self, older_than: float, batch: int) -> None:
        pruned = prune_now(older_than, batch)
        self.stdout.write(
            f"Deleted {counted(pruned.tasks, 'tasks')} in {counted(pruned.batches, 'batches')}, "
            f"{counted(pruned.orphans, 'history rows')} without a task, {counted(pruned.workers, 'worker processes')}, "
            f"{counted(pruned.keys, 'idempotency keys')}, {counted(pruned.deliveries, 'deliveries')}, "
            f"{counted(pruned.entries, 'inbox entries')}."
        )


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise ArgumentTypeError(f"{text!r} is not a whole number from 1 to 100000")
    return int(text)
