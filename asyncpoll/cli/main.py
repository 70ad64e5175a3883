"""From a command line to an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

from asyncpoll.cli import cancel, inbox, plan, server, submit, wait, watch
from asyncpoll.cli.errors import GaveUp, UsageError
from asyncpoll.cli.exits import Exit
from asyncpoll.cli.parsing import Parser
from asyncpoll.client import (
    AsyncpollError,
    Client,
    Misused,
    Refused,
    TaskGone,
)

_ASKING = {"submit": submit, "wait": wait, "watch": watch, "cancel": cancel, "inbox": inbox}
_EPILOG = (
    "exit codes: 0 done, 1 the task failed or was cancelled, 2 gave up (the task goes on), 3 usage, 130 interrupted "
    "(the task goes on). pip install 'asyncpoll[cli]' for a live progress bar on terminals."
)


def run() -> NoReturn:
    """The console script."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Carry out one command line and give the exit code."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Whoever read has left; the interpreter would complain when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.BROKEN_PIPE
    except (UsageError, GaveUp, AsyncpollError) as error:
        print(f"asyncpoll {options.command}: {error}", file=sys.stderr)
        return exit_of(error)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = Parser(prog="asyncpoll", description="Submit tasks and wait for them.", epilog=_EPILOG)
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in _ASKING.items():
        one = commands.add_parser(name, help=command.HELP, description=command.HELP)
        command.add_options(one)
        one.add_argument("--json", action="store_true", help="JSON on stdout, a document a line")
        one.add_argument("--quiet", action="store_true", help="nothing on stderr but errors")
        server.add_options(one)
        one.set_defaults(run=partial(_ask, command.run))
    plan.register(commands)
    return whole


def _ask(
    command: Callable[[Client, argparse.Namespace], Exit], options: argparse.Namespace
) -> Exit:
    with server.client(options) as client:
        return command(client, options)


def exit_of(error: Exception) -> Exit:
    """What an error means for whoever called."""
    match error:
        case TaskGone():
            return Exit.FAILED
        case UsageError() | Misused() | Refused():
            return Exit.USAGE
        case _:
            return Exit.GAVE_UP
