"""Command lines, refused in one line and with the exit code for usage."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from asyncpoll.cli.exits import Exit


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong command line is one line on stderr and exit code 3, and no option has a short form."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """End the process with `message`."""
        self.exit(Exit.USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def seconds(text: str) -> float:
    """A number of seconds above 0. Raises argparse.ArgumentTypeError."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 366 * 86_400:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of seconds above 0 and up to a year"
        )
    return value
