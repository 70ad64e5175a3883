"""The command line: `python -m bench NAME [options]`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from bench import fleet, holds, insight, lists, prune, worker
from bench.errors import BenchError
from bench.fleet import command as fleet_command
from bench.holds import command as holds_command
from bench.insight import command as insight_command
from bench.lists import command as lists_command
from bench.prune import command as prune_command
from bench.worker import command as worker_command

# The package's docstring describes the benchmark; its command module has add_arguments(parser) and run(options).
_BENCHMARKS: dict[str, tuple[ModuleType, ModuleType]] = {
    "fleet": (fleet, fleet_command),
    "holds": (holds, holds_command),
    "insight": (insight, insight_command),
    "lists": (lists, lists_command),
    "prune": (prune, prune_command),
    "worker": (worker, worker_command),
}


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark that `arguments` name; the exit code."""
    options = _parser().parse_args(arguments)
    if options.list or options.name is None:
        for name, (package, _) in _BENCHMARKS.items():
            print(f"{name:10} {_summary(package)}")
        return 0
    # The store's verbs, with which tasks are stored and changed, look at the project's limits.
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "asyncpoll.settings")
    try:
        options.run(options)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the benchmarks and stop")
    names = parser.add_subparsers(dest="name", metavar="NAME")
    for name, (package, command) in _BENCHMARKS.items():
        one = names.add_parser(
            name,
            help=_summary(package),
            description=package.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(one)
        one.set_defaults(run=command.run)
    return parser


def _summary(package: ModuleType) -> str:
    return (package.__doc__ or "").partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
