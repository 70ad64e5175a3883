"""Command lines, refused in one line and with the exit code for usage."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from asyncpoll.cli.exits import Exit


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong command line is one line on stderr and exit code 3, and no option has a short form.

    Words may stand before, between and behind the options of a command.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)
        self._is_intermixing = False

    def error(self, message: str) -> NoReturn:
        """End the process with `message`."""
        self.exit(Exit.USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Intermixed, which argparse does for no parser of several commands, but for each command's own."""
        if self._subparsers is not None or self._is_intermixing:
            return super().parse_known_args(args, namespace)
        self._is_intermixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_intermixing = False


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
