"""The command line of `python -m bench worker`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bench.database import Databases, databases
from bench.errors import BenchError
from bench.machine import describe
from bench.options import add_common, names, numbers, or_none, say, write_json
from bench.worker import cancelling, growth
from bench.worker.figures import Figures, median_of
from bench.worker.report import Report
from bench.worker.run import Run
from bench.worker.subjects import Subject, subjects

_PACKAGES = (
    *("Django", "psycopg", "uvloop", "asyncpg", "pgqueuer", "procrastinate"),
    *("django-tasks-db", "celery", "redis"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    known = [subject.name for subject in subjects()]
    parser.add_argument(
        "--batch",
        type=numbers(most=1_000),
        default=[1, 10, 200],
        metavar="N,N",
        help="tasks to a call, and tasks that a worker claims at once (1,10,200)",
    )
    parser.add_argument(
        "--queue",
        type=or_none(names(known)),
        default=known,
        metavar="NAME,NAME",
        help=f"task queues to measure, or none ({','.join(known)})",
    )
    parser.add_argument(
        "--growth",
        type=or_none(numbers(most=100_000_000)),
        default=[1_000, 100_000, 3_000_000],
        metavar="N,N",
        help="finished tasks beside which to claim and commit, or none (1000,100000,3000000)",
    )
    parser.add_argument(
        "--cancels",
        type=or_none(numbers(most=10_000)),
        default=[100],
        metavar="N",
        help="running tasks to cancel, or none (100)",
    )
    add_common(parser)


def run(options: argparse.Namespace) -> None:
    """Measure, print the tables, write the JSON. Raises BenchError at the end if something could not be measured."""
    with databases() as databases_:
        bench = _Bench(options, databases_)
        report = bench.report()
    print(report.markdown())
    write_json(options.json, report.as_json())
    if bench.failures:
        raise BenchError("\n".join(bench.failures))


class _Bench:
    """All the runs of one invocation, one after another."""

    def __init__(self, options: argparse.Namespace, databases_: Databases) -> None:
        self.failures: list[str] = []
        self._asked = options
        self._databases = databases_

    def report(self) -> Report:
        """Every subject with every size of batch, `--repeat` times; then growth, then cancels."""
        asked = [subject for subject in subjects() if subject.name in self._asked.queue]
        able = [subject for subject in asked if not subject.missing]
        report = Report(self._notes(asked))
        for batch in self._asked.batch:
            # Rounds and not one subject after another: a machine that changes its pace does so for all.
            whom = [subject for subject in able if subject.takes(batch)]
            runs = [self._measure(s, batch) for _ in range(self._asked.repeat) for s in whom]
            report.runs += [figures for figures in runs if figures is not None]
            report.medians += _medians(report.runs, whom, batch)
        if self._asked.growth:
            report.costs = growth.measure(self._databases, self._asked.growth, say)
        if self._asked.cancels:
            report.cancels = cancelling.measure(self._databases, self._asked.cancels[0], say)
        return report

    def _measure(self, subject: Subject, batch: int) -> Figures | None:
        say(f"{subject.name}, batch {batch} …")
        try:
            with subject.place(self._databases) as place:
                return Run(subject, batch, place).measure()
        except BenchError as error:
            self.failures.append(f"{subject.name} could not be measured at batch {batch}: {error}")
            return None

    def _notes(self, asked: Sequence[Subject]) -> list[str]:
        notes = [
            describe(_PACKAGES),
            f"Postgres: {self._databases.note}",
            "asyncpoll's: what it completed, as a multiple of what this queue ran at the same batch",
            *(f"{subject.name}: {subject.note}" for subject in asked if not subject.missing),
            *(
                f"{subject.name}: not installed ({', '.join(subject.missing)}; pip install -r requirements-bench.txt)"
                for subject in asked
                if subject.missing
            ),
        ]
        if self._asked.repeat > 1:
            notes.append(f"medians of {self._asked.repeat} rounds")
        return notes


def _medians(runs: list[Figures], whom: list[Subject], batch: int) -> list[Figures]:
    groups = ([r for r in runs if (r.subject, r.batch) == (s.name, batch)] for s in whom)
    return [median_of(group) for group in groups if group]
