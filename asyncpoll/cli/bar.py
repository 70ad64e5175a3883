"""A live progress bar, with rich."""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from asyncpoll.cli import words
from asyncpoll.client import Answer


class Bar:
    """One bar on the console, which pulses until a task reports how far it is."""

    def __init__(self, console: Console) -> None:
        # Through rich's proxy, lines printed meanwhile stand above the bar; only a terminal wants that.
        self._progress = Progress(
            TextColumn("{task.fields[state]}", style="bold", markup=False),
            BarColumn(finished_style="green"),  # rich's own is grey where there are only 8 colours
            TextColumn("{task.fields[message]}", markup=False),
            TimeElapsedColumn(),
            console=console,
            redirect_stdout=sys.stdout.isatty(),
        )
        self._task = self._progress.add_task("", total=None, state="", message="")

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave it as it is, and the terminal as it was."""
        self._progress.stop()

    def show(self, answer: Answer) -> None:
        """The status or the fraction done, and the task's own words."""
        done = 1.0 if answer.succeeded else answer.progress
        self._progress.update(
            self._task,
            total=None if done is None else 1.0,
            completed=done or 0.0,
            state=words.standing(answer),
            message=words.clean(answer.message),
        )

    def count(self, ended: int, of: int) -> None:
        """How many of several are over."""
        self._progress.update(
            self._task, total=of, completed=ended, state=words.counted(ended, of), message=""
        )
