"""The command line of `python -m bench insight`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from bench.database import Databases, databases
from bench.errors import BenchError
from bench.figures import in_turns
from bench.insight.filling import TYPES, fill
from bench.machine import describe
from bench.options import add_common, numbers, write_json
from bench.store import StoreConnection
from bench.verdicts import Verdict, table
from tasks_app.insights.plan import make_plan
from tasks_app.insights.sketch import GAMMA, SHORTEST_MS
from tasks_app.plans.registry import Asked, combined
from tasks_app.store import roll_up
from tasks_app.upkeep.rollups import LOOKS

_AIM_MS = 200.0
_WARM_UPS = 3
_ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Figures:
    """Medians in milliseconds, beside `tasks` of a month; `rolled` tasks were rolled up in `roll_up_ms`."""

    tasks: int
    samples: int
    one_type_ms: float
    all_types_ms: float
    rolled: int
    roll_up_ms: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--tasks",
        type=numbers(most=1_000_000_000),
        default=[100_000, 1_000_000, 10_000_000],
        metavar="N,N",
        help="finished tasks of a month (100000,1000000,10000000)",
    )
    add_common(parser)


def run(options: argparse.Namespace) -> None:
    """Measure, print the table, write the JSON."""
    with databases() as databases_:
        figures = _measure(databases_, options.tasks, options.repeat)
        notes = [describe(("psycopg", "ddsketch")), f"Postgres {databases_.note}"]
    verdicts = [
        Verdict(f"{which}, ms", "≤", _AIM_MS, f"{each.tasks:,}", took, is_ratio=False)
        for each in figures
        for which, took in (("one type", each.one_type_ms), ("all types", each.all_types_ms))
    ]
    parts = [_rows(figures), table(verdicts), [f"- {note}" for note in notes]]
    print("\n\n".join("\n".join(part) for part in parts))
    found: dict[str, Any] = {"notes": notes, "figures": [asdict(each) for each in figures]}
    write_json(options.json, found | {"aims": [verdict.as_json() for verdict in verdicts]})


def _measure(databases_: Databases, sizes: Sequence[int], repeat: int) -> list[Figures]:
    with ExitStack() as stack:
        months = []
        for size in sizes:
            url = stack.enter_context(databases_.fresh())
            months.append(_Month(stack.enter_context(closing(StoreConnection(url))), size))
        for month in in_turns(months, _WARM_UPS + _ROUNDS * repeat):
            month.round()
        return [month.figures() for month in months]


class _Month:
    def __init__(self, store: StoreConnection, tasks: int) -> None:
        self._store = store
        self._tasks = tasks
        self._samples = 0
        self._one: list[float] = []
        self._all: list[float] = []
        fill(store, tasks)
        store.execute("SET enable_seqscan = off")
        store.execute("SET jit = off")

    def round(self) -> None:
        """Ask for one type, then for all."""
        self._one.append(_timed(lambda: self._ask("bench.type_7")))
        self._all.append(_timed(lambda: self._ask(None)))

    def figures(self) -> Figures:
        """The medians of the rounds after the warm-up, and what an hour takes to be rolled up."""
        self._store.execute("DELETE FROM tasks_app_rolledhour")
        rolled = 0

        def hour() -> None:
            nonlocal rolled
            found = self._store.run(roll_up(1, LOOKS, GAMMA, SHORTEST_MS))
            rolled = 0 if found is None else found.count

        took = _timed(hour)
        one, every = median(self._one[_WARM_UPS:]), median(self._all[_WARM_UPS:])
        return Figures(self._tasks, self._samples, one, every, rolled, took)

    def _ask(self, task: str | None) -> None:
        of_newest, of_ran, of_waited = Asked(task=task).calls()
        newest, ran = self._store.run(of_newest), self._store.run(of_ran)
        found = combined(newest, ran, self._store.run(of_waited))
        for name, measured in found.items():
            plan = make_plan(name, measured.ran)
            for percent in (50, 95, 99):
                measured.waited.percentile(percent)
        if len(found) != (1 if task else TYPES) or plan.p99_ms is None:
            raise BenchError(f"{len(found)} types were measured beside {self._tasks:,} tasks.")
        self._samples = sum(len(measured.ran) for measured in found.values())


def _timed(work: Callable[[], None]) -> float:
    began = time.monotonic()
    work()
    return (time.monotonic() - began) * 1000


def _rows(figures: Sequence[Figures]) -> list[str]:
    least = figures[0]
    lines = ["| tasks in a month | one type | all types | roll up an hour |", "|--:|--:|--:|--:|"]
    for each in figures:
        one = f"{each.one_type_ms:.1f} ms ({each.one_type_ms / least.one_type_ms:.2f}×)"
        every = f"{each.all_types_ms:.1f} ms ({each.all_types_ms / least.all_types_ms:.2f}×)"
        hour = f"{each.roll_up_ms:.1f} ms for {each.rolled:,}"
        lines.append(f"| {each.tasks:,} | {one} | {every} | {hour} |")
    return lines
