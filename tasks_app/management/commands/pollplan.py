"""`manage.py pollplan`: how to wait for tasks, from what the registry measured or from files."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from asyncpoll.cli.main import unwritable
from asyncpoll.cli.plan import from_files, written
from asyncpoll.planfile import PlanFileError
from tasks_app import conf
from tasks_app.insights.options import Unclear, add_options, is_about_measurements, report
from tasks_app.insights.reading import Refused
from tasks_app.insights.report import Report
from tasks_app.management.ages import seconds
from tasks_app.management.refusals import database_needed
from tasks_app.plans.registry import USUAL_SECONDS, Asked, combined
from tasks_app.plans.remarks import remarks
from tasks_app.store.driver import run

_NOTHING = "No task that ended in that time was measured; run some, or name a FILE."


class Command(BaseCommand):
    """Parses arguments and nothing else."""

    help = (
        "Turn measured durations into percentiles and polling parameters for each type of task, say whether to poll at "
        "all, and whether it pays. Without a FILE: by the tasks of this registry that have ended."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        add_options(parser)
        group = parser.add_argument_group("the registry's own measurements")
        group.add_argument(
            "--since",
            type=seconds,
            default=USUAL_SECONDS,
            metavar="AGE",
            help="of tasks that ended since: days, or a number with d, h, m or s (30 days)",
        )
        group.add_argument("--queue", metavar="NAME", help="only of this queue")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the report, or one sentence if there can't be one."""
        asked = Namespace(**options)
        try:
            text = written(asked, _measured(asked) if _of_registry(asked) else from_files(asked))
        except (Unclear, Refused, OSError, PlanFileError) as error:
            raise CommandError(str(error)) from None
        try:
            self.stdout.write(text, ending="")
            self.stdout.flush()
        except OSError as error:
            sys.exit(unwritable(error, "manage.py pollplan"))


def _of_registry(asked: Namespace) -> bool:
    return not asked.files and is_about_measurements(asked)


def _measured(asked: Namespace) -> Report:
    asked.max_hold = asked.max_hold or conf.current().MAX_HOLD_SECONDS
    wanted = Asked(asked.since, tuple(asked.outcome or ("SUCCESS",)), queue=asked.queue)
    with database_needed():
        of_newest, of_ran, of_waited = wanted.calls()
        newest, ran, waited = run(of_newest), run(of_ran), run(of_waited)
        found = combined(newest, ran, waited)
    named = {name: each for name, each in found.items() if not asked.task or name in asked.task}
    made = report(asked, {name: each.ran for name, each in named.items()}, datetime.now(UTC))
    return replace(made, remarks=remarks(named) or (_NOTHING,))
