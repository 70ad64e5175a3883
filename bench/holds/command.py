"""The command line of `python -m bench holds`."""

from __future__ import annotations

import argparse
import sys

from bench.database import Databases, databases
from bench.errors import BenchError
from bench.generator import Generator
from bench.holds import subjects as subjects_module
from bench.holds.figures import Figures, median_of
from bench.holds.report import Report
from bench.holds.run import Run
from bench.holds.subjects import SERVERS, Options, Subject, subjects
from bench.machine import Cores, choose_cores, describe, pin, raise_open_files
from bench.options import add_common, names, numbers, write_json

# One source address has 28,000 ports to connect from, as Linux is set up.
_MOST_HELD = 25_000
_SPARE_FILES = 500
_PACKAGES = ("Django", "channels", "daphne", "uvicorn", "granian", "fastapi", "uvloop", "httptools")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--held",
        type=numbers(_MOST_HELD, ": one address has no more ports"),
        default=[1500, 8000],
        metavar="N,N",
        help="requests held at once (1500,8000)",
    )
    parser.add_argument(
        "--server",
        type=names(SERVERS),
        default=list(SERVERS),
        metavar="NAME,NAME",
        help=f"servers to run asyncpoll under ({','.join(SERVERS)})",
    )
    parser.add_argument(
        "--loop",
        choices=("asyncio", "uvloop"),
        default="asyncio",
        help="event loop of uvicorn and granian, for everything that is measured (%(default)s)",
    )
    parser.add_argument(
        "--channels-up-to",
        type=int,
        default=1500,
        metavar="N",
        help="most requests held by the baseline with a channel each, which is quadratic (%(default)s)",
    )
    add_common(parser)


def run(options: argparse.Namespace) -> None:
    """Measure, print the tables, write the JSON. Raises BenchError at the end if a server could not be measured."""
    raise_open_files(max(options.held) + _SPARE_FILES)
    whom = subjects(options.server, options.channels_up_to)
    cores = choose_cores()
    pin(0, cores.load)  # Postgres is started by this process and so stays on its core
    with databases() as databases_, Generator(cores.load) as generator:
        bench = _Bench(options, cores, databases_, generator)
        report = bench.report(whom)
    print(report.markdown())
    write_json(options.json, report.as_json())
    if bench.failures:
        raise BenchError("\n".join(bench.failures))


class _Bench:
    """All the runs of one invocation, one after another."""

    def __init__(
        self,
        options: argparse.Namespace,
        cores: Cores,
        databases_: Databases,
        generator: Generator,
    ) -> None:
        self.failures: list[str] = []
        self._asked = options
        self._cores = cores
        self._databases = databases_
        self._generator = generator
        self._options = Options(options.loop, max(options.held))

    def report(self, whom: list[Subject]) -> Report:
        """Every subject with every number held, `--repeat` times."""
        reference = next(subject.name for subject in whom if subject.is_reference)
        report = Report(reference, self._notes())
        for held in self._asked.held:
            able = [s for s in whom if s.most_held is None or held <= s.most_held]
            report.left_out += [
                f"{subject.name} is left out at {held:,}: the time it takes grows with the square "
                f"of the number held (--channels-up-to is {subject.most_held:,})."
                for subject in whom
                if subject not in able
            ]
            # Rounds and not one subject after another: a machine that changes its pace does so for all.
            runs = [self._measure(s, held) for _ in range(self._asked.repeat) for s in able]
            report.runs += [figures for figures in runs if figures is not None]
            report.medians += _medians(report.runs, able, held)
        return report

    def _measure(self, subject: Subject, held: int) -> Figures | None:
        print(f"{subject.name}, {held:,} held …", file=sys.stderr, flush=True)
        try:
            with subject.running(self._databases, self._options, self._cores.server) as running:
                return Run(running, self._generator, subject.name, held).measure()
        except BenchError as error:
            self.failures.append(f"{subject.name} could not be measured with {held:,}: {error}")
            return None

    def _notes(self) -> list[str]:
        notes = [
            describe(_PACKAGES),
            f"uvicorn with {subjects_module.http_implementation()}, uvicorn and granian on {self._asked.loop}; "
            "daphne on asyncio; one process each; ratios are to the first line with as many held",
            f"Postgres: {self._databases.note}, on the core of the load generator",
        ]
        if self._asked.repeat > 1:
            notes.append(f"medians of {self._asked.repeat} rounds")
        if not self._cores.are_apart:
            notes.append("one core for server and load generator: these figures say little")
        return notes


def _medians(runs: list[Figures], whom: list[Subject], held: int) -> list[Figures]:
    groups = ([r for r in runs if (r.subject, r.held) == (s.name, held)] for s in whom)
    return [median_of(group) for group in groups if group]
