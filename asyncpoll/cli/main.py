"""From a command line to an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from asyncpoll.cli import cancel, inbox, plan, server, submit, wait, watch, words
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
    "(the task goes on). With rich installed, terminals get a live progress bar."
)


def main(arguments: Sequence[str]) -> int:
    """Carry out one command line and give the exit code."""
    prepare_streams()
    options = parser().parse_args(arguments)
    try:
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except (UsageError, GaveUp, AsyncpollError) as error:
        # Before OSError: a wait that took too long is one of those as well. It may quote what a server said.
        print(f"asyncpoll {options.command}: {words.clean(str(error))}", file=sys.stderr)
        return exit_of(error)
    except OSError as error:
        return unwritable(error, f"asyncpoll {options.command}")


def prepare_streams() -> None:
    """Whatever the locale, everything can be printed; what a shell has closed takes it and shows nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end
            setattr(sys, name, nowhere)
        getattr(sys, name).reconfigure(errors="backslashreplace")


def unwritable(error: OSError, command: str) -> Exit:
    """What it means that output can't be written: whoever read it has left, which is no error, or its disk is full."""
    # What is left in the buffer must not fail once more at the interpreter's end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return Exit.BROKEN_PIPE
    print(f"{command}: the output can't be written ({error.strerror})", file=sys.stderr)
    return Exit.GAVE_UP


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
