"""How a wait looks while it goes on. Results go to stdout; this goes to stderr and can be left out."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from asyncpoll.cli import words
from asyncpoll.cli.interrupts import before_leaving
from asyncpoll.client import Answer

if TYPE_CHECKING:
    from asyncpoll.cli.bar import Bar


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


@contextmanager
def screen(quiet: bool, otherwise: Screen | None = None) -> Iterator[Screen]:
    """Nothing if `quiet`; a live bar on a terminal, if rich is installed; `otherwise` (lines) anywhere else."""
    if quiet:
        yield Nothing()
    elif (bar := _bar()) is None:
        yield otherwise or Lines()
    else:
        # In this order the cursor also comes back to whom the bar's own beginning or end is interrupted.
        with before_leaving(bar.stop), bar:
            yield bar


def _bar() -> Bar | None:
    # rich takes longer to import than all else here, and is not everywhere.
    if not sys.stderr.isatty() or find_spec("rich") is None:
        return None
    from rich.console import Console

    from asyncpoll.cli.bar import Bar

    console = Console(stderr=True)
    return None if console.is_dumb_terminal else Bar(console)
