"""The command line of `python -m bench prune`."""

from __future__ import annotations

import argparse

from bench.database import databases
from bench.machine import describe
from bench.options import numbers, say, write_json, write_to
from bench.prune.figures import judge, markdown
from bench.prune.run import measure
from bench.verdicts import table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--tasks",
        type=numbers(most=100_000_000),
        default=[1_000_000],
        metavar="N",
        help="finished tasks to delete (1000000)",
    )
    write_to(parser)


def run(options: argparse.Namespace) -> None:
    """Measure, print the tables, write the JSON. Raises BenchError."""
    with databases() as databases_:
        figures = measure(databases_, options.tasks[0], say)
        notes = [describe(("Django", "psycopg")), f"Postgres: {databases_.note}"]
    verdicts = judge(figures)
    parts = [markdown(figures), table(verdicts), [f"- {note}" for note in notes]]
    print("\n\n".join("\n".join(part) for part in parts))
    aims = [verdict.as_json() for verdict in verdicts]
    write_json(options.json, {"notes": notes, "figures": figures.as_json(), "aims": aims})
