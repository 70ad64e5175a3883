"""How a wait looks while it goes on. Results go to stdout; this goes to stderr and can be left out."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Protocol

from asyncpoll.cli import words
from asyncpoll.client import Answer


class Screen(Protocol):
    """Shows how far a wait has come."""

    def show(self, answer: Answer) -> None:
        """The task as it is now."""
        ...

    def count(self, ended: int, of: int) -> None:
        """How many of several tasks are over."""
        ...


class Nothing:
    """For output that programs read."""

    def show(self, answer: Answer) -> None:
        """Nothing."""

    def count(self, ended: int, of: int) -> None:
        """Nothing."""


class Lines:
    """A line for each change: for logs, and terminals that can't do more."""

    def show(self, answer: Answer) -> None:
        """When, and in which state."""
        self._say(words.state(answer))

    def count(self, ended: int, of: int) -> None:
        """When, and how many."""
        self._say(words.counted(ended, of))

    def _say(self, text: str) -> None:
        print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def screen(quiet: bool, otherwise: Screen | None = None) -> AbstractContextManager[Screen]:
    """Nothing if `quiet`; a live bar on a terminal, if rich is installed; `otherwise` (lines) anywhere else."""
    if quiet:
        return nullcontext(Nothing())
    return _bar() or nullcontext(otherwise or Lines())


def _bar() -> AbstractContextManager[Screen] | None:
    # rich takes longer to import than all else here, and is not everywhere.
    if not sys.stderr.isatty() or find_spec("rich") is None:
        return None
    from rich.console import Console

    from asyncpoll.cli.bar import Bar

    console = Console(stderr=True)
    return None if console.is_dumb_terminal else Bar(console)
